// The nodes of a directory's names that are alive: the same name gives the same node while its meaning stays.
// Thread-safe.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "vfs/node.h"

namespace playfs::vfs {

class Children {
 public:
  /// The living child of that name which `fits` (asked under the lock of these children), else the one that `make`
  /// makes, which takes the name over. A former one lives on under its own number for as long as the kernel refers to
  /// it.
  template <class Kind, class Fits, class Make>
  std::shared_ptr<Kind> get(const std::string& name, Fits fits, Make make) PLAYFS_EXCLUDES(mutex_) {
    std::shared_ptr<Node> former;  // may be the last to let go of it: not under the lock
    MutexLock lock(mutex_);
    auto found = nodes_.find(name);
    if (found != nodes_.end()) {
      former = found->second.lock();
      if (auto same = std::dynamic_pointer_cast<Kind>(former); same && fits(*same)) return same;
    }
    std::shared_ptr<Kind> made = make();
    nodes_.insert_or_assign(name, made);
    if (nodes_.size() > sweep_at_) {
      std::erase_if(nodes_, [](const auto& item) { return item.second.expired(); });
      sweep_at_ = std::max<std::size_t>(64, 2 * nodes_.size());
    }
    return made;
  }

  /// nullptr: the kernel knows no such child.
  template <class Kind>
  std::shared_ptr<Kind> living(const std::string& name) PLAYFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    auto found = nodes_.find(name);
    return found == nodes_.end() ? nullptr : std::dynamic_pointer_cast<Kind>(found->second.lock());
  }

 private:
  Mutex mutex_;
  std::map<std::string, std::weak_ptr<Node>> nodes_ PLAYFS_GUARDED_BY(mutex_);
  std::size_t sweep_at_ PLAYFS_GUARDED_BY(mutex_) = 64;
};

}  // namespace playfs::vfs
