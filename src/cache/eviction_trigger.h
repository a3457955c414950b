// Decides when a part of the cache evicts, and ensures that it does.
//
// A pass accounts for bytes written before it began. Bytes written during a pass count towards the next one, and if a
// pass fails or another process is evicting, its bytes count again. So nothing written is ever forgotten, whatever
// threads and processes do, and once nobody writes, usage exceeds the budget by at most one share.
//
// Thread-safe. One pass at a time, run without a lock held.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/executor.h"
#include "base/mutex.h"
#include "base/result.h"

namespace playfs::cache {

class EvictionTrigger : public std::enable_shared_from_this<EvictionTrigger> {
 public:
  /// Evicts. `busy`: another process is evicting and may not have seen what was written here.
  using Pass = std::function<Status()>;

  /// Runs `pass` on the executor after every `share` bytes written, and again shortly after a failure. Without an
  /// executor it runs in wrote(), and after a failure in the next one. `written` counts as already written.
  static std::shared_ptr<EvictionTrigger> make(std::uint64_t share, std::uint64_t written, Executor* executor,
                                               Pass pass);

  /// Call once the bytes are where the pass looks for them.
  void wrote(std::uint64_t bytes) PLAYFS_EXCLUDES(mutex_);

  /// Runs a pass if one is due and none is running here, waiting up to three seconds for another process's; then never
  /// again. For shutdown, when an executor may drop its tasks.
  void finish() PLAYFS_EXCLUDES(mutex_);

 private:
  EvictionTrigger(std::uint64_t share, std::uint64_t written, Executor* executor, Pass pass);
  void run() PLAYFS_EXCLUDES(mutex_);
  void tell(const Status& made) PLAYFS_EXCLUDES(mutex_);

  const std::uint64_t share_;
  Executor* const executor_;
  const Pass pass_;
  Mutex mutex_;
  std::uint64_t written_ PLAYFS_GUARDED_BY(mutex_);  ///< bytes not yet covered by a pass
  bool asked_ PLAYFS_GUARDED_BY(mutex_) = false;     ///< run() is posted and will check written_
  bool running_ PLAYFS_GUARDED_BY(mutex_) = false;
  bool finished_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::string told_ PLAYFS_GUARDED_BY(mutex_);  ///< the last failure, until a pass succeeds
};

}  // namespace playfs::cache
