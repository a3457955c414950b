// A few threads for expensive work that any client may request: clients take turns, and past a limit of waiting jobs,
// those of the client with the most are refused. Thread-safe.
#pragma once

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

  /// `light_threads` are additional, and only serve clients whose recent jobs were cheap.
  FairPool(unsigned threads, std::size_t most_waiting, unsigned light_threads = 0);
  /// As join().
  ~FairPool();
  FairPool(const FairPool&) = delete;
  FairPool& operator=(const FairPool&) = delete;

  /// If the queue is full, refuses a job: this one or another client's.
  void offer(const std::string& client, Job job);
  /// Queues the rest of a job: it waits its turn like any other, and is never refused.
  void go_on(const std::string& client, Job job);

  /// Runs the waiting jobs, then ends the threads. Idempotent; must not be called by two threads at once.
  void join();

 private:
  void work(bool light_only);

  Mutex mutex_;
  Condition changed_;
  FairQueue<Job> queue_ PLAYFS_GUARDED_BY(mutex_);
  bool ending_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace playfs::http
