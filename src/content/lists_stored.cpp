// Loading lists from disk, whole or in part.
#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "content/lists.h"

namespace playfs::content {

namespace {
/// Owners whose parts were given out and are not cached any more.
constexpr std::size_t kMostLetGo = 10'000;
/// How often a part is read again because the list changes meanwhile.
constexpr int kMostReadAgain = 3;
}  // namespace

std::size_t Lists::bytes_of(const std::vector<Listed>& items) {
  return std::accumulate(items.begin(), items.end(), std::size_t{0},
                         [](std::size_t sum, const Listed& item) { return sum + item.bytes(); });
}

void Lists::List::show() {
  if (created.empty() || !read) {
    shown = read;
    return;
  }
  std::vector<Listed> both;
  both.reserve(created.size() + read->size());
  for (const Created& own : created) both.push_back(own.item);
  both.insert(both.end(), read->begin(), read->end());
  shown = std::make_shared<const std::vector<Listed>>(std::move(both));
}

Lists::AllGiven Lists::List::changed(const ListChange& change) {
  ++changes;
  if (change.is_any) {
    let_go.clear();
    has_let_go_of_many = false;
    return by_owner.take_all();
  }
  AllGiven outdated;
  for (const std::string& owner : change.owners) {
    let_go.erase(owner);
    for (Given& each : by_owner.take(owner)) outdated.push_back(std::move(each));
  }
  return outdated;
}

Lists::AllGiven Lists::List::keep(const std::string& owner, const ListPtr& records) {
  AllGiven evicted = by_owner.insert(owner, {owner, records}, sizeof(Given) + owner.size() + bytes_of(*records));
  for (const Given& each : evicted)
    if (each.owner != owner) let_go_of(each.owner);
  return evicted;
}

void Lists::List::let_go_of(const std::string& owner) {
  if (let_go.size() < kMostLetGo) let_go.insert(owner);
  else has_let_go_of_many = has_let_go_of_many || !let_go.contains(owner);
}

void Lists::List::tell_let_go(ListChange& change) {
  change.is_any = change.is_any || std::exchange(has_let_go_of_many, false);
  change.owners.merge(let_go);
  let_go.clear();
}

Lists::AllGiven Lists::List::given() const {
  AllGiven all;
  by_owner.for_each([&](const std::string&, const Given& each) { all.push_back(each); });
  return all;
}

void Lists::List::forget() {
  is_forgotten = is_forgotten || read;
  read = nullptr;
  shown = nullptr;
  asked_at.reset();
  period = 0;
  is_part = is_stored = is_cut = false;
}

bool Lists::is_known(const std::string& collection) { return load(collection).has_value(); }

Status Lists::load(const std::string& collection) {
  {
    MutexLock lock(mutex_);
    if (auto found = lists_.find(collection); found != lists_.end() && found->second.read) return {};
    if (is_disk_outdated_) return fail(ErrorCode::not_found, "what is stored is of another service");
  }
  const std::size_t all = context_.options.list_bytes, most = is_nameless(collection) ? std::min(kPart, all) : all;
  PLAYFS_TRY(std::vector<Listed> stored, context_.records.list(context_.site, collection, most));
  const bool is_part = bytes_of(stored) > most;
  const bool goes_on = context_.records.list_goes_on(context_.site, collection);
  AllGiven outdated;  // destroyed after the lock is released
  MutexLock lock(mutex_);
  List& list = lists_[collection];
  if (list.read) return {};
  list.read = std::make_shared<const std::vector<Listed>>(std::move(stored));
  list.is_part = is_part;
  list.is_stored = true;
  list.is_cut = goes_on;
  ++list.loaded;
  outdated = list.changed({.is_any = true, .owners = {}});
  list.show();
  // Another process may have rewritten it. Posted, since listeners may ask for what this caller is about to return.
  if (std::exchange(list.is_forgotten, false))
    context_.executor.post(context_.guarded([this, collection] { tell(collection, {.is_any = true, .owners = {}}); }));
  return {};
}

ListPtr Lists::known(const std::string& collection) {
  if (!is_known(collection)) return nullptr;
  {
    MutexLock lock(mutex_);
    const List& list = lists_[collection];
    if (!list.is_part) return list.shown;
  }
  if (!complete(collection)) return nullptr;
  MutexLock lock(mutex_);
  const List& list = lists_[collection];
  return list.is_part ? nullptr : list.shown;
}

Status Lists::probe(const std::string& collection) {
  const auto newest = context_.records.list(context_.site, collection, 0);
  if (!newest && newest.error().code == ErrorCode::busy) return fail(newest.error());
  MutexLock lock(mutex_);
  lists_[collection].is_locked = false;
  return {};
}

std::set<std::string> Lists::outdated(const AllGiven& given, std::span<const Listed> list) {
  struct Known {
    const Listed* record;
    bool is_current;
  };
  std::unordered_map<std::string_view, Known> known;
  std::unordered_map<std::string_view, std::ptrdiff_t> more;  // records of an owner than were given out
  for (const auto& [owner, records] : given) {
    more.emplace(owner, -std::ssize(*records));
    for (const Listed& record : *records) known.insert_or_assign(record.id, Known{&record, false});
  }
  for (const Listed& item : list) {
    if (auto owner = more.find(item.project); owner != more.end()) ++owner->second;
    if (auto record = known.find(item.id); record != known.end())
      record->second.is_current = *record->second.record == item;
  }
  std::set<std::string> owners;
  for (const auto& [owner, count] : more)
    if (count != 0) owners.emplace(owner);
  for (const auto& [id, each] : known)
    if (!each.is_current) owners.insert(each.record->project);
  return owners;
}

ListPtr Lists::complete(const std::string& collection) {
  const auto stored = context_.records.list(context_.site, collection, context_.options.list_bytes);
  const bool is_busy = !stored && stored.error().code == ErrorCode::busy;
  std::size_t count = 0;
  ListPtr whole;
  AllGiven given;
  ListChange change;
  {
    MutexLock lock(mutex_);
    List& list = lists_[collection];
    // A locked database does not mean that the list is lost.
    list.is_locked = list.is_locked || is_busy;
    if (is_busy) return nullptr;
    if (!list.read || !list.is_part) return list.read;
    const std::span<const Listed> rows = stored ? std::span(*stored) : std::span<const Listed>();
    auto last =
        std::find_if(rows.begin(), rows.end(), [&](const Listed& item) { return item.id == list.read->back().id; });
    if (last == rows.end()) {
      list.forget();
      return nullptr;
    }
    std::vector<Listed> all = *list.read;
    all.insert(all.end(), last + 1, rows.end());
    const bool is_cut = cut(all);
    if (is_cut || list.is_cut) count = all.size();
    list.is_cut = list.is_cut || is_cut;
    list.is_part = false;
    list.read = whole = std::make_shared<const std::vector<Listed>>(std::move(all));
    list.show();
    // Another process may have changed the rest since parts of it were given out.
    ++list.changes;
    given = list.given();
    list.tell_let_go(change);
  }
  change.owners.merge(outdated(given, *whole));
  if (count > 0) tell_cut(collection, count);
  was_changed_elsewhere(collection, std::move(change));
  return whole;
}

void Lists::was_changed_elsewhere(const std::string& collection, ListChange change) {
  if (!change.is_any && change.owners.empty()) return;
  {
    AllGiven outdated;  // destroyed after the lock is released
    MutexLock lock(mutex_);
    outdated = lists_[collection].changed(change);
  }
  // Posted, since listeners may ask for what this caller is about to return.
  context_.executor.post(
      context_.guarded([this, collection, change = std::move(change)] { tell(collection, change); }));
}

ListPtr Lists::of_as_read(const std::string& collection, const std::string& owner) {
  for (int times = 0;; ++times) {
    if (!is_known(collection)) return nullptr;
    ListPtr all;
    bool is_part = false, is_stored = false;
    std::uint64_t changes = 0;
    {
      MutexLock lock(mutex_);
      List& list = lists_[collection];
      if (!list.read) return nullptr;
      if (const Given* known = list.by_owner.find(owner)) return known->records;
      all = list.read;
      is_part = list.is_part;
      is_stored = list.is_stored && !all->empty();
      changes = list.changes;
    }
    const Result<ListPtr> of = read_of(collection, owner, all, is_part, is_stored);
    AllGiven evicted;  // destroyed after the lock is released
    MutexLock lock(mutex_);
    List& list = lists_[collection];
    // A locked database does not mean that the list is lost: the caller tries again.
    const bool is_busy = !of && of.error().code == ErrorCode::busy;
    list.is_locked = list.is_locked || is_busy;
    // Another process may have replaced what is on disk.
    if (!of && !is_busy && list.read == all) list.forget();
    if (!of) return nullptr;
    // Read again: listeners learn of a change only for parts that are cached or noted.
    if (list.changes != changes && times < kMostReadAgain) continue;
    if (list.changes == changes) evicted = list.keep(owner, *of);
    else list.let_go_of(owner);
    return *of;
  }
}

Result<ListPtr> Lists::read_of(const std::string& collection, const std::string& owner, const ListPtr& all,
                               bool is_part, bool is_stored) {
  if (is_stored) {
    auto stored =
        context_.records.list_of(context_.site, collection, all->front().id, owner, context_.options.list_bytes);
    if (stored) return std::make_shared<const std::vector<Listed>>(std::move(*stored));
    if (is_part) return fail(stored.error());
  }
  if (is_part) return fail(ErrorCode::not_found, "the rest of the list is not stored");
  std::vector<Listed> found;
  std::copy_if(all->begin(), all->end(), std::back_inserter(found),
               [&](const Listed& item) { return item.project == owner; });
  return std::make_shared<const std::vector<Listed>>(std::move(found));
}

ListPtr Lists::of(const std::string& collection, const std::string& owner) {
  ListPtr read = of_as_read(collection, owner);
  if (!read) return nullptr;
  std::vector<Listed> both;
  {
    MutexLock lock(mutex_);
    for (const Created& own : lists_[collection].created) {
      auto is_it = [&](const Listed& item) { return item.id == own.item.id; };
      if (own.item.project == owner && std::none_of(read->begin(), read->end(), is_it)) both.push_back(own.item);
    }
  }
  if (both.empty()) return read;
  both.insert(both.end(), read->begin(), read->end());
  return std::make_shared<const std::vector<Listed>>(std::move(both));
}

void Lists::get(const std::string& collection, const CancelToken& cancel, Callback<ListPtr> done) {
  update(collection, cancel, [this, collection, cancel, done = std::move(done)](const Result<void>& updated) mutable {
    if (!updated) return done(fail(updated.error()));
    if (ListPtr all = known(collection)) return done(std::move(all));
    // What was on disk has just been lost: now all of it is read.
    update(collection, cancel, [this, collection, done = std::move(done)](const Result<void>& again) mutable {
      ListPtr all = again ? known(collection) : nullptr;
      if (all) return done(std::move(all));
      done(again ? fail(ErrorCode::busy, "the stored list of " + collection + " cannot be read now", "try again")
                 : fail(again.error()));
    });
  });
}

}  // namespace playfs::content
