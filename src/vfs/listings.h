// Invalidates listings that the kernel caches of the service's lists, as soon as a different list is known, whether
// from the service or by an operation in this mount. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "vfs/node.h"

namespace playfs::vfs {

/// The tag under which Notifications tracks a collection's listings.
inline std::string listings_of(const std::string& collection) { return "listings of " + collection; }

class Listings {
 public:
  explicit Listings(Mount& mount) : mount_(mount) {}

  /// Call before the kernel gets a listing of `directory` that derives from the list of `collection`.
  void given(const std::string& collection, const NodePtr& directory) PLAYFS_EXCLUDES(mutex_);

 private:
  void changed(const std::string& collection) PLAYFS_EXCLUDES(mutex_);

  Mount& mount_;
  Mutex mutex_;
  bool begun_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::map<std::string, std::map<NodeId, std::weak_ptr<Node>>> given_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::vfs
