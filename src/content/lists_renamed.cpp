// Records of a list that were read by themselves, or on an older page, and are no longer what the list says. What this
// process knows and has given out counts, not the disk, where another process may have been first.
#include <algorithm>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include "content/list_changes.h"

namespace playfs::content {

namespace {

constexpr int kMostAttemptsToRename = 8;

}  // namespace

/// One call of rename(). What it has found to have changed stays so, however often it begins again.
struct Lists::Renaming {
  const std::string& collection;
  std::vector<Listed> now;
  std::span<const Record> texts;
  ListChange change = {};
  std::set<std::string_view> changed = {};  ///< ids
  bool is_cut = false;
  std::size_t count = 0;

  /// Notes what the record was known as.
  bool differs(const Listed& known, const Listed& item) {
    if (is_same(collection, known, item)) return false;
    change.owners.insert({item.project, known.project});
    changed.insert(item.id);
    return true;
  }
};

/// Where the records are listed as something else than they are.
struct Lists::Differences {
  std::vector<std::pair<std::size_t, const Listed*>> known;  ///< places in the known list
  std::vector<const Listed*> stored;                         ///< only on disk
  bool is_own = false;                                       ///< among what we created
  bool is_lost = false;                                      ///< the rest of the list on disk
};

void Lists::rename(const std::string& collection, std::vector<Listed> now, std::span<const Record> texts) {
  Renaming renaming{collection, std::move(now), texts};
  bool is_done = false;
  {
    MutexLock storing(storing_);
    for (int attempt = 0; !is_done && attempt < kMostAttemptsToRename; ++attempt) is_done = try_to_rename(renaming);
  }
  if (!is_done) renaming.change.is_any = true;
  if (renaming.is_cut) tell_cut(collection, renaming.count);
  if (renaming.change.is_any || !renaming.change.owners.empty()) tell(collection, renaming.change);
}

bool Lists::try_to_rename(Renaming& renaming) {
  const std::string& collection = renaming.collection;
  const Base base = this->base(collection);
  if (!base.read) return true;
  const std::optional<Differences> found = differences(renaming, base);
  if (!found) return false;
  const bool is_other = !found->known.empty() || !found->stored.empty() || found->is_own || found->is_lost;
  if (!is_other && renaming.change.owners.empty() && !renaming.change.is_any && !base.has_overtaken) return true;

  std::vector<Listed*> read;
  for (Listed& item : renaming.now) read.push_back(&item);
  Next next;
  next.dated = date(collection, base, read);
  next.is_stored = base.is_stored && !found->is_lost;
  if (!found->known.empty()) next.items = *base.read;
  for (const auto& [place, item] : found->known) {
    renew(next.items[place], *item);
    next.renamed.push_back(next.items[place]);
  }
  for (const Listed* item : found->stored) next.renamed.push_back(*item);
  if (is_talk(collection))
    for (const Record& record : renaming.texts)
      if (renaming.changed.contains(record.id)) context_.store(collection, record);
  if (!found->known.empty()) {
    next.is_cut = !base.is_part && cut(next.items);
    next.list = std::make_shared<const std::vector<Listed>>(std::move(next.items));
  }
  if (!store(renaming, base, next)) return false;
  return commit(renaming, base, next);
}

std::optional<Lists::Differences> Lists::differences(Renaming& renaming, const Base& base) {
  Differences found;
  ById by_id;
  for (const Listed& item : renaming.now) by_id.emplace(item.id, &item);
  for (const Listed& own : base.own)
    if (auto item = by_id.find(own.id); item != by_id.end() && renaming.differs(own, *item->second))
      found.is_own = true;
  for (std::size_t place = 0; place < base.read->size() && !by_id.empty(); ++place) {
    const Listed& known = (*base.read)[place];
    auto item = by_id.find(known.id);
    if (item == by_id.end()) continue;
    if (renaming.differs(known, *item->second)) found.known.emplace_back(place, item->second);
    by_id.erase(item);
  }
  if (base.is_part && !by_id.empty() && !look_beyond(renaming, base, by_id, found)) return std::nullopt;
  return found;
}

bool Lists::look_beyond(Renaming& renaming, const Base& base, const ById& by_id, Differences& found) {
  std::vector<std::string> ids;
  for (const auto& [id, item] : by_id) ids.emplace_back(id);
  const auto rows = context_.records.listed(context_.site, renaming.collection, base.read->front().id, ids);
  if (!rows && rows.error().code == ErrorCode::busy) await_again(renaming.collection, ids);
  else if (!rows) found.is_lost = true;
  // Only then: what is given out from now on is no older than these rows.
  AllGiven given;
  {
    MutexLock lock(mutex_);
    List& list = lists_[renaming.collection];
    if (!base.is_still(list)) return false;
    ++list.changes;
    list.tell_let_go(renaming.change);
    given = list.given();
  }
  std::unordered_map<std::string_view, std::set<std::string_view>> in;  // owners given out to those of the ids they had
  for (const auto& [owner, records] : given) {
    auto& had = in[owner];
    for (const Listed& known : *records) {
      auto item = by_id.find(known.id);
      if (item == by_id.end()) continue;
      had.insert(known.id);
      renaming.differs(known, *item->second);
    }
  }
  if (!rows) return true;
  for (const Listed& row : *rows) {
    const Listed& item = *by_id.at(row.id);
    if (renaming.differs(row, item)) found.stored.push_back(&item);
    auto owner = in.find(item.project);
    if (owner == in.end() || owner->second.contains(item.id)) continue;
    renaming.change.owners.insert(item.project);  // it was given out without this one
    renaming.changed.insert(item.id);
  }
  return true;
}

bool Lists::store(Renaming& renaming, const Base& base, Next& next) {
  const std::string& collection = renaming.collection;
  if (next.renamed.empty() && next.is_stored == base.is_stored) return true;
  next.is_stored =
      next.is_stored && context_.records.extend_list(context_.site, collection, base.read->front().id, next.renamed);
  if (next.is_stored) return true;
  if (!base.is_part) {
    next.is_stored = context_.records.replace_list(context_.site, collection, next.list ? *next.list : *base.read,
                                                   base.is_cut || next.is_cut);
    return true;
  }
  // The cache is optional: goes on in memory, with all of the list or, if that is lost, with none.
  if (complete(collection)) return false;
  renaming.change.is_any = true;
  MutexLock lock(mutex_);
  List& list = lists_[collection];
  list.is_outdated = true;
  list.forget();
  return false;
}

bool Lists::commit(Renaming& renaming, const Base& base, const Next& next) {
  ById by_id;
  for (const Listed& item : renaming.now) by_id.emplace(item.id, &item);
  AllGiven outdated;  // destroyed after the lock is released
  MutexLock lock(mutex_);
  List& list = lists_[renaming.collection];
  if (!base.is_still(list)) return false;
  list.take(next.dated);
  bool is_own = false;
  for (Created& own : list.created) {
    auto item = by_id.find(own.item.id);
    if (item == by_id.end() || is_same(renaming.collection, own.item, *item->second)) continue;
    renew(own.item, *item->second);
    is_own = true;
  }
  if (next.list) list.read = next.list;
  list.is_stored = next.is_stored;
  if (next.list || is_own) list.show();
  ListChange& change = renaming.change;
  renaming.is_cut = next.is_cut && !std::exchange(list.is_cut, true);
  renaming.count = list.read->size();
  change.is_any = change.is_any || renaming.is_cut;
  if (change.is_any || !change.owners.empty()) {
    list.tell_let_go(change);
    outdated = list.changed(change);
  }
  return true;
}

void Lists::renew(Listed& known, Listed now) {
  if (now.name == known.name) now.named_at = known.named_at;
  known = std::move(now);
}

}  // namespace playfs::content
