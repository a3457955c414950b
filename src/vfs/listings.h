// Invalidates listings that the kernel caches of the service's lists, as soon as a different list is known, whether
// from the service or by an operation in this mount. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "content/types.h"
#include "vfs/node.h"

namespace playfs::vfs {

/// The tag under which Notifications tracks a collection's listings.
inline std::string listings_of(const std::string& collection) { return "listings of " + collection; }

class Listings {
 public:
  explicit Listings(Mount& mount) : mount_(mount) {}

  /// Call before the kernel gets a listing of `directory` that is derived from the list of `collection`. `owner`: set
  /// if it has only one owner's records, such as a thread's messages.
  void given(const std::string& collection, const NodePtr& directory, std::optional<std::string> owner = {})
      PLAYFS_EXCLUDES(mutex_);

 private:
  struct Given {
    std::weak_ptr<Node> directory;
    std::optional<std::string> owner;  ///< nullopt: of any
  };
  using AllGiven = std::map<NodeId, Given>;
  void changed(const std::string& collection, const content::ListChange& change) PLAYFS_EXCLUDES(mutex_);

  Mount& mount_;
  Mutex mutex_;
  bool begun_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::map<std::string, AllGiven> given_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::vfs
