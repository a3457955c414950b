// Remembers by which name a thread has just reached a record: by a link in by-title/ or by-name/, which it looked up
// before the rest of the path.
//
// The link leads to the record's id, so the rest of the path does not tell that a name was used, and the kernel does
// not say which requests belong to one system call. But those of one path come from one thread, one after another. So a
// thread is forgotten when it requests anything but lookups, attributes and link targets, and after some seconds. A
// program that has been in a record's directory for longer counts as having come by the id, since the kernel no longer
// looks up how it got there. A thread may also be remembered for longer than its path lasts. Then what it writes by id
// counts as written by the name: that costs a request, and is refused only if the record was renamed just then.
// Thread-safe; its lock is a leaf.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>

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

  void note(pid_t thread, NamedRecord record) PLAYFS_EXCLUDES(mutex_);
  /// nullptr: none. Cheap while no thread is remembered.
  [[nodiscard]] NamedRecordPtr of(pid_t thread) const PLAYFS_EXCLUDES(mutex_);
  /// The same. If the thread's working directory is in a record's directory, also looks at its process and, as long as
  /// they have the same working directory, at the processes that started it: a child inherits the directory of a shell
  /// that came by a name. Reads /proc.
  [[nodiscard]] NamedRecordPtr of_family(pid_t thread) const PLAYFS_EXCLUDES(mutex_);
  void forget(pid_t thread) PLAYFS_EXCLUDES(mutex_);

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
