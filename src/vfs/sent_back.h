// Remembers which threads were answered `stale` to make the kernel look again.
//
// The kernel retries once per system call, from the start of the path; a second `stale` reaches the program. So a
// thread that already got one must wait instead, whatever the name. A thread may be remembered longer than its call
// lasts: then it waits where it could have been sent back. Thread-safe; its lock is a leaf.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>

#include "base/mutex.h"

namespace playfs::vfs {

class SentBack {
 public:
  void note(pid_t thread) PLAYFS_EXCLUDES(mutex_) {
    const auto now = Clock::now();
    MutexLock lock(mutex_);
    std::erase_if(until_, [&](const auto& each) { return each.second < now; });
    until_[thread] = now + kRemembered;
  }
  [[nodiscard]] bool is_known(pid_t thread) const PLAYFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    auto found = until_.find(thread);
    return found != until_.end() && Clock::now() <= found->second;
  }

 private:
  using Clock = std::chrono::steady_clock;
  /// Long enough for a path with several slow names.
  static constexpr std::chrono::minutes kRemembered{1};
  mutable Mutex mutex_;
  std::map<pid_t, Clock::time_point> until_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::vfs
