// A directory's live child nodes: a name keeps its node for as long as it means the same thing. Thread-safe.
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
  /// Returns the live child of that name if it satisfies `fits` (called under the lock), else a new one from `make`,
  /// which takes over the name. The previous node keeps its id and lives until the kernel drops its last reference.
  template <class Kind, class Fits, class Make>
  std::shared_ptr<Kind> get(const std::string& name, Fits fits, Make make) PLAYFS_EXCLUDES(mutex_) {
    std::shared_ptr<Node> former;  // may hold the last reference; destroyed after the lock is released
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

  /// nullptr if there is no live child of that name.
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
