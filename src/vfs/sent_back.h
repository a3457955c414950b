// Who was answered `stale` in order to look again.
//
// The kernel does that once for each call of a program, from the beginning of the path; a second such answer is what
// the program gets. So whoever was sent back, for whatever name, is not for the next. A thread may be remembered for
// longer than its call takes: then it waits where it might have been sent back. Thread-safe; its lock is a leaf.
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
  /// A path may have several names that come late.
  static constexpr std::chrono::minutes kRemembered{1};
  mutable Mutex mutex_;
  std::map<pid_t, Clock::time_point> until_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::vfs
