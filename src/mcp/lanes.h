// Threads that each do one thing after the other: requests of one lane keep their order, and do not wait for the
// others.
//
// Thread-safe. Tasks run with no lock held.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <thread>
#include <vector>

#include "base/callback.h"
#include "base/mutex.h"

namespace playfs::mcp {

class Lanes {
 public:
  struct Limits {
    std::size_t tasks = 64;         ///< that wait in one lane
    std::size_t bytes = 64u << 20;  ///< of all that wait
  };
  Lanes(unsigned count, Limits limits);
  /// Waits for the tasks that run, and drops the others.
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  /// `size`: about how many bytes it keeps. `after`: runs once all that has been added to that lane so far has run.
  /// False: too much is waiting already.
  [[nodiscard]] bool add(unsigned lane, std::optional<unsigned> after, std::size_t size, Task run)
      PLAYFS_EXCLUDES(mutex_);
  /// Waits until nothing runs or waits; whether that came about within the time.
  bool wait_until_idle(std::chrono::milliseconds most) PLAYFS_EXCLUDES(mutex_);

 private:
  struct Waiting {
    Task run;
    std::size_t size = 0;
    unsigned after = 0;
    std::uint64_t until = 0;  ///< how many tasks of the lane `after` must have run
  };
  struct Lane {
    std::deque<Waiting> waiting;
    std::uint64_t added = 0, done = 0;
  };
  void work(unsigned index) PLAYFS_EXCLUDES(mutex_);
  /// nullopt: it is to end.
  [[nodiscard]] std::optional<Task> next(unsigned index) PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] bool is_idle() const PLAYFS_REQUIRES(mutex_);

  const Limits limits_;
  Mutex mutex_;
  Condition changed_;
  std::vector<Lane> lanes_ PLAYFS_GUARDED_BY(mutex_);
  std::size_t bytes_ PLAYFS_GUARDED_BY(mutex_) = 0;
  bool is_ending_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace playfs::mcp
