// When room is made in a part of the cache, and that it is made.
//
// A pass makes room for what was written before it began. What is written while it runs counts towards the next one,
// and what a pass could not make room for, since it failed or another process was at it, counts again: nothing that was
// written is forgotten, whatever threads and processes do at the same time. So once nobody writes, at most a share is
// there beyond the budget.
//
// Thread-safe. One pass at a time; none of its locks is held while it runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/executor.h"
#include "base/mutex.h"
#include "base/result.h"

namespace playfs::cache {

class RoomKeeper : public std::enable_shared_from_this<RoomKeeper> {
 public:
  /// Makes room. `busy`: another process is making room, and may not have seen what was written here.
  using Pass = std::function<Status()>;

  /// Runs `pass` on the executor each time that `share` bytes were written, and again a little later where it failed.
  /// Without an executor it runs in wrote(), and after a failure in the next one. `written` counts as written already.
  static std::shared_ptr<RoomKeeper> make(std::uint64_t share, std::uint64_t written, Executor* executor, Pass pass);

  /// To be called when the bytes are where the pass looks for them.
  void wrote(std::uint64_t bytes) PLAYFS_EXCLUDES(mutex_);

  /// Makes the room that is due, if nobody else is at it; then never again. For the end, when an executor may drop what
  /// it was given.
  void finish() PLAYFS_EXCLUDES(mutex_);

 private:
  RoomKeeper(std::uint64_t share, std::uint64_t written, Executor* executor, Pass pass);
  void run() PLAYFS_EXCLUDES(mutex_);
  void tell(const Status& made) PLAYFS_EXCLUDES(mutex_);

  const std::uint64_t share_;
  Executor* const executor_;
  const Pass pass_;
  Mutex mutex_;
  std::uint64_t written_ PLAYFS_GUARDED_BY(mutex_);  ///< bytes that no pass has answered for
  bool asked_ PLAYFS_GUARDED_BY(mutex_) = false;     ///< run() has been posted and will look at written_
  bool running_ PLAYFS_GUARDED_BY(mutex_) = false;
  bool finished_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::string told_ PLAYFS_GUARDED_BY(mutex_);  ///< the last failure, until a pass succeeds
};

}  // namespace playfs::cache
