// Who asked and died meanwhile.
//
// The kernel says by INTERRUPT that nobody waits for an answer any more, but not of the reads that it makes ahead of a
// reader or in pages that others may want too: these are nobody's, and stay until they are answered. So the processes
// behind them are watched. That costs a descriptor each: where half of those that this process may have are in use,
// nobody more is watched, and the reads of those wait for the service's answer. Thread-safe; a thread and its
// descriptors begin with the first watch.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <thread>

#include "base/fd.h"
#include "base/mutex.h"

namespace playfs::fuse {

class CallerWatch {
 public:
  /// `gone` is called with the number of a watch, at most once for each, on the thread of this object.
  explicit CallerWatch(std::function<void(std::uint64_t)> gone) : gone_(std::move(gone)) {}
  ~CallerWatch();
  CallerWatch(const CallerWatch&) = delete;
  CallerWatch& operator=(const CallerWatch&) = delete;

  /// Watches a thread of any process under a number. Closing what is returned ends that; it is empty where nothing can
  /// be watched.
  [[nodiscard]] UniqueFd watch(std::uint64_t number, pid_t thread) PLAYFS_EXCLUDES(mutex_);

 private:
  [[nodiscard]] bool begin() PLAYFS_REQUIRES(mutex_);
  void run();

  const std::function<void(std::uint64_t)> gone_;
  Mutex mutex_;
  UniqueFd watched_, stop_;  ///< set before the thread begins
  std::thread thread_;
};

}  // namespace playfs::fuse
