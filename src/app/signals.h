// SIGINT, SIGTERM and SIGHUP as an event: for processes that run until they are told to end.
#pragma once

#include <functional>
#include <thread>

#include "base/fd.h"

namespace playfs::app {

/// From construction on the three signals are blocked in this thread and in all that it starts, so it must come
/// before any other thread. The destructor lets them through again; one that came meanwhile and was not asked for
/// by on_signal or wait is dropped.
class TerminationSignals {
 public:
  TerminationSignals();
  ~TerminationSignals();
  TerminationSignals(const TerminationSignals&) = delete;
  TerminationSignals& operator=(const TerminationSignals&) = delete;

  /// Calls `stop` on a thread of its own when the first signal comes. REQUIRES: called once.
  void on_signal(std::function<void()> stop);
  /// After this `stop` is not called any more, nor running. Idempotent.
  void end();
  /// Sleeps until a signal comes.
  void wait();

 private:
  /// False when it was `end_` that came.
  bool next();

  UniqueFd signals_;
  UniqueFd end_;
  std::thread watcher_;
};

}  // namespace playfs::app
