// Loading lists from disk, whole or in part.
#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "content/lists.h"

namespace playfs::content {

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

std::vector<ListPtr> Lists::List::changed(const ListChange& change) {
  ++changes;
  if (change.is_any) return by_owner.take_all();
  std::vector<ListPtr> outdated;
  for (const std::string& owner : change.owners)
    for (ListPtr& each : by_owner.take(owner)) outdated.push_back(std::move(each));
  return outdated;
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
  }
  const std::size_t all = context_.options.list_bytes, most = is_nameless(collection) ? std::min(kPart, all) : all;
  PLAYFS_TRY(std::vector<Listed> stored, context_.records.list(context_.site, collection, most));
  const bool is_part = bytes_of(stored) > most;
  const bool goes_on = context_.records.list_goes_on(context_.site, collection);
  std::vector<ListPtr> outdated;  // destroyed after the lock is released
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

ListPtr Lists::complete(const std::string& collection) {
  const auto stored = context_.records.list(context_.site, collection, context_.options.list_bytes);
  // A locked database does not mean that the list is lost.
  if (!stored && stored.error().code == ErrorCode::busy) return nullptr;
  std::size_t count = 0;
  ListPtr whole;
  {
    MutexLock lock(mutex_);
    List& list = lists_[collection];
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
  }
  if (count > 0) tell_cut(collection, count);
  return whole;
}

ListPtr Lists::of_as_read(const std::string& collection, const std::string& owner) {
  if (!is_known(collection)) return nullptr;
  ListPtr all;
  bool is_part = false, is_stored = false;
  std::uint64_t changes = 0;
  {
    MutexLock lock(mutex_);
    List& list = lists_[collection];
    if (!list.read) return nullptr;
    if (const ListPtr* known = list.by_owner.find(owner)) return *known;
    all = list.read;
    is_part = list.is_part;
    is_stored = list.is_stored && !all->empty();
    changes = list.changes;
  }
  std::optional<std::vector<Listed>> found;
  if (is_stored) {
    auto stored =
        context_.records.list_of(context_.site, collection, all->front().id, owner, context_.options.list_bytes);
    if (stored) found = std::move(*stored);
    // A locked database does not mean that the list is lost: the caller tries again.
    else if (is_part && stored.error().code == ErrorCode::busy) return nullptr;
  }
  if (!found && !is_part) {
    found.emplace();
    std::copy_if(all->begin(), all->end(), std::back_inserter(*found),
                 [&](const Listed& item) { return item.project == owner; });
  }
  ListPtr of = found ? std::make_shared<const std::vector<Listed>>(std::move(*found)) : nullptr;
  std::vector<ListPtr> evicted;  // destroyed after the lock is released
  MutexLock lock(mutex_);
  List& list = lists_[collection];
  if (of && list.changes == changes) evicted = list.by_owner.insert(owner, of, sizeof(owner) + bytes_of(*of));
  // Another process may have replaced what is on disk.
  if (!of && list.read == all) list.forget();
  return of;
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
