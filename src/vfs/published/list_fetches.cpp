#include "vfs/published/list_fetches.h"

#include "vfs/attempt_fetches.h"
#include "vfs/mount.h"

namespace playfs::vfs {
namespace {

/// What `known` returns, after the list was requested if necessary.
template <class Known>
Attempt<ListPtr> list_or_fetch(Mount& mount, const OperationPtr& op, const std::string& collection, bool any_age,
                               const Known& known, const std::string* owner = nullptr) {
  PLAYFS_ATTEMPT_CHECK(own_requests_answered(mount, op, collection, owner));
  const std::string fact = "listed/" + collection;
  mount.site().follow_list(collection);
  ListPtr here = known();
  if (here && (any_age || op->noted(fact) || op->noted(kGoesOn))) return here;
  const auto patience = here ? mount.site().patience().left_for(collection) : std::nullopt;
  if (here && !patience) return here;
  auto ask = [&mount, op, collection, fact](CancelToken cancel, Callback<void> done) {
    mount.site().update_list(collection, std::move(cancel),
                             [op, fact, done = std::move(done)](Result<void> updated) mutable {
                               if (updated) op->note(fact);
                               done(std::move(updated));
                             });
  };
  if (!here) return missing(std::move(ask));
  return missing(fetch_news(mount, op, collection, *patience, fact, std::move(ask)));
}

Attempt<ListPtr> list_or_fetch(Mount& mount, const OperationPtr& op, const std::string& collection, bool any_age) {
  return list_or_fetch(mount, op, collection, any_age, [&] { return mount.site().try_list(collection); });
}

}  // namespace

Attempt<ListPtr> list_here(Mount& mount, const OperationPtr& op, const std::string& collection) {
  return list_or_fetch(mount, op, collection, mount.site().is_list_told(collection));
}

Attempt<ListPtr> list_of_here(Mount& mount, const OperationPtr& op, const std::string& collection,
                              const std::string& owner) {
  return list_or_fetch(
      mount, op, collection, mount.site().is_list_told(collection),
      [&] { return mount.site().try_list_of(collection, owner); }, &owner);
}

Attempt<ListPtr> list_of_here_as_read(Mount& mount, const OperationPtr& op, const std::string& collection,
                                      const std::string& owner) {
  return list_or_fetch(
      mount, op, collection, mount.site().is_list_told(collection),
      [&] { return mount.site().try_list_of_as_read(collection, owner); }, &owner);
}

Attempt<ListPtr> fresh_list(Mount& mount, const OperationPtr& op, const std::string& collection) {
  return list_or_fetch(mount, op, collection, mount.site().is_list_fresh(collection));
}

Attempt<ListPtr> known_list(Mount& mount, const OperationPtr& op, const std::string& collection) {
  return list_or_fetch(mount, op, collection, true);
}

}  // namespace playfs::vfs
