// Remembers which threads were answered `stale` to make the kernel look again.
//
// The kernel retries once per system call, from the start of the path; a second `stale` reaches the program. So a
// thread that already got one must wait instead, whatever the name, until its call is known to be over. A thread may
// be remembered longer than its call lasts: then it waits where it could have been sent back. Thread-safe; its lock is
// a leaf.
#pragma once

#include <sys/types.h>

#include <atomic>
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
    is_any_ = true;
  }
  /// The thread has asked for what ends the way along a path. Cheap where nobody is remembered.
  void forget(pid_t thread) PLAYFS_EXCLUDES(mutex_) {
    if (!is_any_) return;
    MutexLock lock(mutex_);
    until_.erase(thread);
    is_any_ = !until_.empty();
  }
  [[nodiscard]] bool is_known(pid_t thread) const PLAYFS_EXCLUDES(mutex_) {
    if (!is_any_) return false;
    MutexLock lock(mutex_);
    auto found = until_.find(thread);
    return found != until_.end() && Clock::now() <= found->second;
  }

 private:
  using Clock = std::chrono::steady_clock;
  /// Longer than a lookup and a readlink wait together; a path may have several of them.
  static constexpr std::chrono::minutes kRemembered{2};
  mutable Mutex mutex_;
  std::map<pid_t, Clock::time_point> until_ PLAYFS_GUARDED_BY(mutex_);
  std::atomic<bool> is_any_ = false;
};

}  // namespace playfs::vfs
