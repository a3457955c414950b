// Symbolic links whose targets are not available yet: who waits for them, and where.
//
// The kernel caches targets in pages, so a path through a link costs no message. But a process that wants a page which
// another one is waiting for blocks where no signal reaches it. So readlink never waits: its reader gets `stale` and
// looks the path up again. The kernel holds no lock for that, as it knows the names by now, so the reader waits in that
// lookup. Its next readlink gets the result. A reader that may already have been sent back from another link of the
// path waits in readlink itself, for a while. Thread-safe; its lock is a leaf.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "vfs/attempt.h"

namespace playfs::vfs {

class Mount;

class LateLinks {
 public:
  explicit LateLinks(Mount& mount) : mount_(mount) {}

  /// Answers a readlink; `target` is the attempt at the target.
  Attempt<std::string> read(const OperationPtr& op, NodeId link, Attempt<std::string> target) PLAYFS_EXCLUDES(mutex_);
  /// Whether a lookup comes from a reader that got `stale` for this link.
  [[nodiscard]] bool is_awaited(const OperationPtr& op, NodeId link) const PLAYFS_EXCLUDES(mutex_);
  /// Makes such a lookup wait for the target. It then succeeds in any case: the name exists whatever it points to.
  Attempt<void> wait(const OperationPtr& op, NodeId link, Attempt<std::string> target) PLAYFS_EXCLUDES(mutex_);

 private:
  using SteadyClock = std::chrono::steady_clock;
  using Key = std::pair<NodeId, pid_t>;
  struct Reader {
    SteadyClock::time_point until;  ///< when to forget a reader that never comes back
    std::optional<Error> failed;    ///< the error it waited for, if any
  };
  void set_failed(const Key& reader, Error error) PLAYFS_EXCLUDES(mutex_);

  Mount& mount_;
  mutable Mutex mutex_;
  std::map<Key, Reader> readers_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::vfs
