// Symbolic links whose targets are not here: who wants them, and where he waits.
//
// The kernel keeps targets in pages, so that a path through a link costs no message; and whoever wants a page that
// another one waits for waits where no signal reaches him. So reading a link does not wait. Its reader is sent back
// (`stale`) and looks the path up once more, for which the kernel locks nothing as it knows the names by now: there he
// waits, and when he reads the link again he is told what came of it. A reader who was sent back from another name of
// the path already waits where he reads, for a while. Thread-safe; its lock is a leaf.
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

  /// What the reader of a link is answered; `target`: as far as it is here.
  Attempt<std::string> read(const OperationPtr& op, NodeId link, Attempt<std::string> target) PLAYFS_EXCLUDES(mutex_);
  /// Whether a look-up is by somebody who was sent back from the link.
  [[nodiscard]] bool is_awaited(const OperationPtr& op, NodeId link) const PLAYFS_EXCLUDES(mutex_);
  /// Has such a look-up wait. It succeeds all the same: a name is there, whatever it leads to.
  Attempt<void> wait(const OperationPtr& op, NodeId link, Attempt<std::string> target) PLAYFS_EXCLUDES(mutex_);

 private:
  using Clock = std::chrono::steady_clock;
  using Key = std::pair<NodeId, pid_t>;
  struct Reader {
    Clock::time_point until;      ///< when he is forgotten, should he never come back
    std::optional<Error> failed;  ///< what his waiting came to
  };
  void set_failed(const Key& reader, Error error) PLAYFS_EXCLUDES(mutex_);

  Mount& mount_;
  mutable Mutex mutex_;
  std::map<Key, Reader> readers_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::vfs
