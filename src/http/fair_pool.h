// A few threads for work that any client may request: clients take turns, and past a limit of waiting jobs,
// those of the client with the most are refused. Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "http/fair_queue.h"

namespace playfs::http {

class FairPool {
 public:
  /// Called once, must not throw: with `has_turn` on one of the threads, otherwise, when refused, from within offer().
  using Job = std::function<void(bool has_turn)>;

  /// `light_threads` are additional, and only serve clients whose recent jobs cost up to `light` of CPU time.
  FairPool(unsigned threads, std::size_t most_waiting, unsigned light_threads = 0,
           std::chrono::nanoseconds light = std::chrono::milliseconds(50));
  /// As join().
  ~FairPool();
  FairPool(const FairPool&) = delete;
  FairPool& operator=(const FairPool&) = delete;

  /// If the queue is full, refuses a job: this one or another client's.
  void offer(const std::string& client, Job job);
  /// Queues the rest of a job: it waits its turn like any other, and is never refused.
  void go_on(const std::string& client, Job job);

  /// The number of jobs that wait for their turn.
  [[nodiscard]] std::size_t waiting();

  /// Runs the waiting jobs, then ends the threads. Idempotent; must not be called by two threads at once.
  void join();

 private:
  void wake() PLAYFS_REQUIRES(mutex_);
  void work(bool light_only);

  Mutex mutex_;
  Condition changed_;
  Condition light_changed_;  ///< for threads that only serve light clients
  FairQueue<Job> queue_ PLAYFS_GUARDED_BY(mutex_);
  std::size_t idle_ PLAYFS_GUARDED_BY(mutex_) = 0;  ///< threads that wait for a job of any client
  bool ending_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace playfs::http
