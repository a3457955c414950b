// A few threads for work of which anyone may ask for much: clients take turns, and past a number of waiting jobs those
// of the client with the most are refused. Thread-safe.
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
  /// Called once, must not throw: on one of the threads when it has its turn, otherwise refused in a call of offer().
  using Job = std::function<void(bool has_turn)>;

  /// `light_threads` more are for clients alone whose jobs have cost little lately.
  FairPool(unsigned threads, std::size_t most_waiting, unsigned light_threads = 0);
  /// As join().
  ~FairPool();
  FairPool(const FairPool&) = delete;
  FairPool& operator=(const FairPool&) = delete;

  /// Refuses a job where there is no room, this one or another client's.
  void offer(const std::string& client, Job job);
  /// The rest of a job: it waits for its turn like any other, and is never refused.
  void go_on(const std::string& client, Job job);

  /// Runs what waits, then ends. Idempotent; not for two threads at once.
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
