// Remembers by which name a thread reaches a record: it has looked up a link in by-title/ or by-name/, and the rest of
// the path follows.
//
// The link leads to the record's id, so the rest of the path does not tell that a name was used, and the kernel does
// not say which requests belong to one system call. But those of a path come from one thread, one after another. So a
// thread is forgotten when it requests anything but lookups, attributes and link targets, and after some seconds.
//
// The kernel may not cache the way to a thread's directory. So it asks for that directory on each path through it, and
// whether it does so right behind a link tells a name from an id (`arrived`). A path that begins in the directory asks
// for nothing on the way: there, the way counts by which its process came, or one of those that started it and are
// there, too (`of_family`). A program that looks at a link alone, and then goes to that record's id by a path that
// begins in threads/ or by-title/, is taken for one that followed the link.
//
// Thread-safe; its lock is a leaf. arrived() and of_family() read /proc, if names are in use.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"

namespace playfs::vfs {

/// A record, and the name by which a path led to it; no name: it was its id.
struct NamedRecord {
  std::string collection, id, name;
};
using NamedRecordPtr = std::shared_ptr<const NamedRecord>;

class NamesUsed {
 public:
  using SteadyClock = std::chrono::steady_clock;

  /// The thread has looked up a link.
  void note(pid_t thread, NamedRecord record) PLAYFS_EXCLUDES(mutex_);
  /// The thread begins a path: it has not followed the link that it looked up before.
  void begins(pid_t thread) PLAYFS_EXCLUDES(mutex_);
  /// The thread has looked up the directory of a record.
  void arrived(pid_t thread, const std::string& collection, const std::string& id) PLAYFS_EXCLUDES(mutex_);
  /// The thread looks up a name in that directory. Call once for each lookup.
  void entered(pid_t thread, const std::string& id) PLAYFS_EXCLUDES(mutex_);
  /// What it is remembered for; nullptr: nothing. `is_lookup`: for a lookup, to which a way counts that has just ended
  /// above it. Cheap while nothing is remembered.
  [[nodiscard]] NamedRecordPtr of(pid_t thread, bool is_lookup = false) const PLAYFS_EXCLUDES(mutex_);
  /// How the thread's current directory was reached, if it is a record's: a shell leaves that to its children.
  [[nodiscard]] NamedRecordPtr of_family(pid_t thread) PLAYFS_EXCLUDES(mutex_);
  void forget(pid_t thread) PLAYFS_EXCLUDES(mutex_);

 private:
  struct Thread {
    NamedRecordPtr record;
    /// In the directory. Lasts until the second lookup there: the kernel looks up a request file that it knows twice,
    /// since the first answer is always another file.
    bool is_arrived = false;
    bool is_inside = false;  ///< it has looked up a name there since
    pid_t process = 0;       ///< of which it is the latest way; 0: unknown
    SteadyClock::time_point until;
  };
  /// How a process came to a record's directory.
  struct Way {
    std::uint64_t started = 0;  ///< the process, since ids of processes are used again
    NamedRecordPtr record;      ///< nullptr: as its parent did
    /// Another way to it, while it was there: a path through it, or a change to the same directory.
    NamedRecordPtr latest;
    bool is_change = false;  ///< shells look at a directory before they change to it
  };
  using InDirectory = std::pair<pid_t, std::string>;  ///< a process, and a record's id
  using Ways = std::map<InDirectory, Way>;

  void remember(pid_t thread, NamedRecordPtr record, bool is_arrived) PLAYFS_REQUIRES(mutex_);
  void came(const InDirectory& where, std::uint64_t started, bool was_there, const NamedRecordPtr& record)
      PLAYFS_REQUIRES(mutex_);
  /// The way of a process to its current directory. `is_for_child`: a child is looking.
  [[nodiscard]] NamedRecordPtr way_of(pid_t process, const std::string& directory, bool is_for_child)
      PLAYFS_EXCLUDES(mutex_);
  void forget_the_dead() PLAYFS_REQUIRES(mutex_);

  /// The longest time between two requests of one system call, on a busy machine.
  static constexpr std::chrono::seconds kBetween{10};
  /// Ways, before those of processes that have ended are looked for.
  static constexpr std::size_t kSpare = 256;
  mutable Mutex mutex_;
  std::map<pid_t, Thread> threads_ PLAYFS_GUARDED_BY(mutex_);
  Ways ways_ PLAYFS_GUARDED_BY(mutex_);
  std::size_t most_ways_ PLAYFS_GUARDED_BY(mutex_) = kSpare;
  std::atomic<bool> is_any_ = false;
};

}  // namespace playfs::vfs
