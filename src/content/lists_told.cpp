// Lists kept current by events.
#include <algorithm>

#include "content/lists.h"

namespace playfs::content {

namespace {
/// Changed records that are remembered until a reading has shown them.
constexpr std::size_t kMostAwaited = 1'000;
/// In an unread list any owner may be affected: a message may have moved from another thread.
const ListChange kAny{.is_any = true, .owners = {}};
}  // namespace

bool Lists::is_told(const std::string& collection) {
  MutexLock lock(mutex_);
  auto found = lists_.find(collection);
  return found != lists_.end() && is_told(collection, found->second);
}

bool Lists::is_lacking(const std::string& collection) {
  MutexLock lock(mutex_);
  auto found = lists_.find(collection);
  return found != lists_.end() && found->second.lacking_since;
}

void Lists::follow(const std::string& collection) {
  MutexLock lock(mutex_);
  lists_[collection].followed_at = context_.clock.steady();
}

bool Lists::is_followed(const List& list) const {
  return list.followed_at && context_.clock.steady() - *list.followed_at < context_.options.in_use;
}

const Listed* Lists::List::lately(const std::string& id) const {
  auto own = std::find_if(created.begin(), created.end(), [&](const Created& each) { return each.item.id == id; });
  if (own != created.end()) return &own->item;
  auto end = read->begin() + std::min<std::ptrdiff_t>(kPageSize, std::ssize(*read));
  auto found = std::find_if(read->begin(), end, [&](const Listed& item) { return item.id == id; });
  return found == end ? nullptr : &*found;
}

bool Lists::has_already(const List& list, const wire::Change& change) {
  const Listed* item = list.read ? list.lately(change.id) : nullptr;
  if (!item || is_fixed_once_made(change.collection)) return item != nullptr;
  const auto time = parse_iso8601(change.updated_at);
  return is_talk(change.collection) && time && *time == item->updated_at;
}

void Lists::heard(const wire::Change& change) {
  const auto& [collection, id, updated_at, belongs_to] = change;
  bool tells = false;
  {
    MutexLock lock(mutex_);
    auto found = lists_.find(collection);
    if (found == lists_.end()) return;  // nothing has used the list
    List& list = found->second;
    if (has_already(list, change)) return;
    tells = (list.read || list.is_forgotten) && list.awaited.empty() && !is_followed(list);
    if (list.awaited.size() < kMostAwaited || list.awaited.contains(id)) list.awaited[id] = ++events_;
  }
  // Nobody reads it now, but the kernel may have a listing of it.
  if (tells) tell(collection, kAny);
}

void Lists::await_again(const std::string& collection, std::span<const std::string> ids) {
  MutexLock lock(mutex_);
  List& list = lists_[collection];
  for (const std::string& id : ids)
    if (list.awaited.size() < kMostAwaited || list.awaited.contains(id)) list.awaited[id] = ++events_;
}

void Lists::bring_up() {
  std::vector<std::string> collections;
  {
    MutexLock lock(mutex_);
    for (const auto& [collection, list] : lists_)
      // Also one that is being read for the first time, if that began before changes were told.
      if (is_followed(list) && !is_read(list)) collections.push_back(collection);
  }
  for (const std::string& collection : collections) bring_up(collection);
}

void Lists::bring_up(const std::string& collection) {
  std::uint64_t before = 0;
  {
    MutexLock lock(mutex_);
    List& list = lists_[collection];
    if (is_read(list) || std::exchange(list.is_brought_up, true)) return;
    before = list.readings;
  }
  update(collection, {}, context_.guarded([this, collection, before](const Result<void>&) {
    bool is_settled = false;
    {
      MutexLock lock(mutex_);
      List& list = lists_[collection];
      list.is_brought_up = false;
      is_settled = list.readings != before && !list.lacking_since;
    }
    // The next reader asks again. What lacks known records may do so for a minute.
    if (!is_settled) return tell(collection, kAny);
    // Events may have come meanwhile, and the reading may have begun before this one was wanted.
    if (context_.live.period() != 0) bring_up(collection);
  }));
}

void Lists::missed() {
  std::vector<std::string> collections;
  {
    MutexLock lock(mutex_);
    for (const auto& [collection, list] : lists_)
      if ((list.read || list.is_forgotten) && !is_followed(list)) collections.push_back(collection);
  }
  for (const std::string& collection : collections) tell(collection, kAny);
}

void Lists::outdate() {
  {
    MutexLock lock(mutex_);
    is_disk_outdated_ = true;
    for (auto& [collection, list] : lists_) {
      list.is_outdated = true;
      list.asked_at.reset();
    }
  }
  outdate_disk();
}

void Lists::outdate_disk() {
  {
    MutexLock lock(mutex_);
    if (!is_disk_outdated_) return;
  }
  // Until it works, nothing is loaded, and each reading tries again.
  if (!context_.records.outdate_lists(context_.site)) return;
  MutexLock lock(mutex_);
  is_disk_outdated_ = false;
}

}  // namespace playfs::content
