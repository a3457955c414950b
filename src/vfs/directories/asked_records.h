// Remembers which records of a directory were requested lately. The kernel looks up their files at each use; with this,
// not every lookup costs a request, even without events. Thread-safe; its lock is a leaf.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"

namespace playfs::vfs {

class AskedRecords {
 public:
  [[nodiscard]] bool is_since(const std::string& id, SteadyTime time) const PLAYFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const auto found = asked_.find(id);
    return found != asked_.end() && found->second > time;
  }

  void note(const std::string& id, SteadyTime now) PLAYFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (asked_.size() >= kMost) asked_.clear();
    asked_.insert_or_assign(id, now);
  }

 private:
  /// Beyond that, all of them are forgotten and requested again.
  static constexpr std::size_t kMost = 10'000;

  mutable Mutex mutex_;
  std::map<std::string, SteadyTime> asked_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::vfs
