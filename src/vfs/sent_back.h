// Remembers which threads were "sent back": answered `stale` to make the kernel look up the path again.
//
// The kernel retries once per system call, from the start of the path; a second `stale` reaches the program. So a
// thread that already got one must not get another before its call is over, and the kernel does not say when that is.
// During the retry, the thread's requests follow upon each other, and each name of the path is looked up again, cached
// or not. So a thread is forgotten when it requests anything but lookups, attributes and link targets, when it reads a
// link that it has not just looked up, and after some seconds, not counting those in which it waits for us.
//
// A thread may still be remembered longer than its call lasts, so callers need an alternative to `stale` that harms
// nobody else. Thread-safe; its lock is a leaf.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <optional>

#include "base/mutex.h"
#include "vfs/file_system.h"

namespace playfs::vfs {

class SentBack {
 public:
  using SteadyClock = std::chrono::steady_clock;

  void note(pid_t thread) PLAYFS_EXCLUDES(mutex_) { keep(thread, kBetween); }
  /// The thread's request is answered. `left` is what left() said when it began: waiting for us does not count.
  void keep(pid_t thread, SteadyClock::duration left) PLAYFS_EXCLUDES(mutex_) {
    const auto now = SteadyClock::now();
    MutexLock lock(mutex_);
    std::erase_if(threads_, [&](const auto& each) { return each.first != thread && each.second.until < now; });
    threads_[thread].until = now + left;
    is_any_ = true;
  }
  /// The thread sent a request that is not part of a path lookup, so its path is resolved. Cheap while no thread is
  /// remembered.
  void forget(pid_t thread) PLAYFS_EXCLUDES(mutex_) {
    if (!is_any_) return;
    MutexLock lock(mutex_);
    threads_.erase(thread);
    is_any_ = !threads_.empty();
  }
  /// How long the thread is still remembered, if it is.
  [[nodiscard]] std::optional<SteadyClock::duration> left(pid_t thread) const PLAYFS_EXCLUDES(mutex_) {
    if (!is_any_) return std::nullopt;
    MutexLock lock(mutex_);
    auto found = threads_.find(thread);
    const auto now = SteadyClock::now();
    return found != threads_.end() && now <= found->second.until ? std::optional(found->second.until - now)
                                                                 : std::nullopt;
  }
  /// A lookup by a thread that was remembered when it began is answered with this node.
  void found(pid_t thread, NodeId node) PLAYFS_EXCLUDES(mutex_) {
    const auto now = SteadyClock::now();
    MutexLock lock(mutex_);
    Thread& known = threads_[thread];
    known.until = std::max(known.until, now);
    known.found = node;
    is_any_ = true;
  }
  /// Whether that was its latest lookup.
  [[nodiscard]] bool has_found(pid_t thread, NodeId node) const PLAYFS_EXCLUDES(mutex_) {
    if (!is_any_) return false;
    MutexLock lock(mutex_);
    auto found = threads_.find(thread);
    return found != threads_.end() && found->second.found == node;
  }

 private:
  struct Thread {
    SteadyClock::time_point until;
    NodeId found = 0;
  };
  /// The longest time between our answer and the thread's next request in the same system call, on a busy machine.
  static constexpr std::chrono::seconds kBetween{10};
  mutable Mutex mutex_;
  std::map<pid_t, Thread> threads_ PLAYFS_GUARDED_BY(mutex_);
  std::atomic<bool> is_any_ = false;
};

}  // namespace playfs::vfs
