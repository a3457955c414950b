#include "vfs/published/list_fetches.h"

#include "vfs/attempt_fetches.h"
#include "vfs/mount.h"

namespace playfs::vfs {
namespace {

Attempt<ListPtr> list_or_fetch(Mount& mount, const OperationPtr& op, const std::string& collection, bool any_age) {
  const std::string fact = "listed/" + collection;
  mount.site().follow_list(collection);
  ListPtr here = mount.site().try_list(collection);
  if (here && (any_age || op->noted(fact) || op->noted(kGoesOn))) return here;
  const auto patience = here ? mount.site().patience().left_for(collection) : std::nullopt;
  if (here && !patience) return here;
  auto ask = [&mount, op, collection, fact](CancelToken cancel, Callback<void> done) {
    mount.site().list(collection, std::move(cancel), [op, fact, done = std::move(done)](Result<ListPtr> list) mutable {
      if (list) op->note(fact);
      done(list ? Status() : Status(fail(std::move(list).error())));
    });
  };
  if (!here) return missing(std::move(ask));
  return missing(fetch_news(mount, op, collection, *patience, fact, std::move(ask)));
}

}  // namespace

std::vector<content::Listed> ListedByOwner::of(const ListPtr& list, std::string_view owner) {
  ListPtr former;  // destroyed after the lock is released
  MutexLock lock(mutex_);
  if (of_ != list) {
    places_.clear();
    former = std::exchange(of_, list);
    for (std::size_t at = 0; at < list->size(); ++at)
      places_[(*list)[at].project].push_back(static_cast<std::uint32_t>(at));
  }
  std::vector<content::Listed> found;
  if (auto places = places_.find(owner); places != places_.end())
    for (const std::uint32_t at : places->second) found.push_back((*list)[at]);
  return found;
}

Attempt<ListPtr> list_here(Mount& mount, const OperationPtr& op, const std::string& collection) {
  return list_or_fetch(mount, op, collection, mount.site().is_list_told(collection));
}

Attempt<ListPtr> fresh_list(Mount& mount, const OperationPtr& op, const std::string& collection) {
  return list_or_fetch(mount, op, collection, mount.site().is_list_fresh(collection));
}

Attempt<ListPtr> known_list(Mount& mount, const OperationPtr& op, const std::string& collection) {
  return list_or_fetch(mount, op, collection, true);
}

}  // namespace playfs::vfs
