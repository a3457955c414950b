// SIGINT, SIGTERM and SIGHUP as an event, for processes that run until they are stopped.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "base/fd.h"

namespace playfs::runtime {

/// Blocks the three signals in this thread and in all that it starts, so construct it before any other thread. The
/// destructor unblocks them, and drops one that arrived and was not consumed by on_signal or wait.
class TerminationSignals {
 public:
  TerminationSignals();
  ~TerminationSignals();
  TerminationSignals(const TerminationSignals&) = delete;
  TerminationSignals& operator=(const TerminationSignals&) = delete;

  /// Calls `stop` on a separate thread when the first signal arrives. REQUIRES: called once.
  void on_signal(std::function<void()> stop);
  /// Afterwards `stop` is neither running nor called any more. Idempotent.
  void end();
  /// Blocks until a signal arrives.
  void wait();
  /// The same, but no longer than that.
  void wait_for(std::chrono::milliseconds most);

 private:
  /// False if woken by `end_`, or if none arrived in time; a negative time has no end.
  bool next(std::chrono::milliseconds most = std::chrono::milliseconds(-1));

  UniqueFd signals_;
  UniqueFd end_;
  std::thread watcher_;
};

}  // namespace playfs::runtime
