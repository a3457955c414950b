// Runs work off a FUSE thread, or later. Implementations are thread-safe.
#pragma once

#include <chrono>
#include <memory>

#include "base/callback.h"

namespace playfs {

class Executor {
 public:
  virtual ~Executor() = default;
  /// Runs `task` soon on one of the executor's threads. Once stopped, the executor drops tasks without running them.
  virtual void post(Task task) = 0;
  /// Runs `task` no earlier than `delay` from now.
  virtual void post_after(std::chrono::nanoseconds delay, Task task) = 0;
};

/// Threads over one queue, at most as many as it is told. One starts whenever a task is queued and none is waiting for
/// it, so that a command that queues little starts few. If the system has no more threads, the others do the work. The
/// destructor calls stop().
class ThreadPool final : public Executor {
 public:
  explicit ThreadPool(unsigned threads);
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  void post(Task task) override;
  void post_after(std::chrono::nanoseconds delay, Task task) override;
  /// Starts all threads now: for what runs on, since later there might be none to be had.
  void start();
  /// Waits for running tasks, drops queued ones and joins the threads. Idempotent; must not be called from a task.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace playfs
