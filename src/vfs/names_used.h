// Remembers by which name a thread reaches a record: it has looked up a link in by-title/ or by-name/, and the rest of
// the path follows.
//
// The link leads to the record's id, so the rest of the path does not tell that a name was used, and the kernel does
// not say which requests belong to one system call. But those of a path come from one thread, one after another. So a
// thread is forgotten when it requests anything but lookups, attributes and link targets, and after some seconds. It
// may be remembered for longer than its path lasts. Then what it writes by id counts as written by the name: that costs
// a question, and is refused only if the record was renamed just then. Thread-safe; its lock is a leaf.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"

namespace playfs::vfs {

/// A record, and the name by which a path led to it.
struct NamedRecord {
  std::string collection, id, name;
};
using NamedRecordPtr = std::shared_ptr<const NamedRecord>;

class NamesUsed {
 public:
  using SteadyClock = std::chrono::steady_clock;

  void note(pid_t thread, NamedRecord record) PLAYFS_EXCLUDES(mutex_) {
    const auto now = SteadyClock::now();
    MutexLock lock(mutex_);
    std::erase_if(threads_, [&](const auto& each) { return each.second.until < now; });
    threads_[thread] = {std::make_shared<const NamedRecord>(std::move(record)), now + kBetween};
    is_any_ = true;
  }
  /// nullptr: none. Cheap while no thread is remembered.
  [[nodiscard]] NamedRecordPtr of(pid_t thread) const PLAYFS_EXCLUDES(mutex_) {
    if (!is_any_) return nullptr;
    MutexLock lock(mutex_);
    auto found = threads_.find(thread);
    return found != threads_.end() && SteadyClock::now() <= found->second.until ? found->second.record : nullptr;
  }
  void forget(pid_t thread) PLAYFS_EXCLUDES(mutex_) {
    if (!is_any_) return;
    MutexLock lock(mutex_);
    threads_.erase(thread);
    is_any_ = !threads_.empty();
  }

 private:
  struct Thread {
    NamedRecordPtr record;
    SteadyClock::time_point until;
  };
  /// The longest time between two requests of one system call, on a busy machine.
  static constexpr std::chrono::seconds kBetween{10};
  mutable Mutex mutex_;
  std::map<pid_t, Thread> threads_ PLAYFS_GUARDED_BY(mutex_);
  std::atomic<bool> is_any_ = false;
};

}  // namespace playfs::vfs
