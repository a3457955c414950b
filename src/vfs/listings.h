// Listings that the kernel keeps of what the service lists: dropped as soon as another list is known, be it news or the
// doing of somebody in this mount. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "vfs/node.h"

namespace playfs::vfs {

/// Whose they are, in what the kernel is told.
inline std::string listings_of(const std::string& collection) { return "listings of " + collection; }

class Listings {
 public:
  explicit Listings(Mount& mount) : mount_(mount) {}

  /// The kernel is about to be given a listing of `directory`, made of the list of `collection`.
  void given(const std::string& collection, const NodePtr& directory) PLAYFS_EXCLUDES(mutex_);

 private:
  void changed(const std::string& collection) PLAYFS_EXCLUDES(mutex_);

  Mount& mount_;
  Mutex mutex_;
  bool begun_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::map<std::string, std::map<NodeId, std::weak_ptr<Node>>> given_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::vfs
