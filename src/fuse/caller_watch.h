// Detects callers that died while their request was running.
//
// The kernel sends an INTERRUPT when nobody waits for an answer any more, except for readahead and reads into shared
// pages: those belong to no caller and stay until they are answered. So the processes behind them are watched. Each
// watch costs a descriptor: once half of this process's limit is in use, no more callers are watched, and their reads
// wait for the service's answer. Thread-safe; the first watch starts a thread and opens its descriptors.
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
  /// `gone` is called with the number of a watch, at most once for each, on this object's thread; on the caller's if
  /// the watched thread has died already.
  explicit CallerWatch(std::function<void(std::uint64_t)> gone) : gone_(std::move(gone)) {}
  ~CallerWatch();
  CallerWatch(const CallerWatch&) = delete;
  CallerWatch& operator=(const CallerWatch&) = delete;

  /// Watches a thread of any process under `number` until the returned descriptor is closed. Empty if that is
  /// impossible.
  [[nodiscard]] UniqueFd watch(std::uint64_t number, pid_t thread) PLAYFS_EXCLUDES(mutex_);

 private:
  [[nodiscard]] bool begin() PLAYFS_REQUIRES(mutex_);
  void run();

  const std::function<void(std::uint64_t)> gone_;
  Mutex mutex_;
  UniqueFd watched_, stop_;  ///< set before the thread starts
  std::thread thread_;
};

}  // namespace playfs::fuse
