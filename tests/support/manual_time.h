// A clock and an executor whose time only the test moves: waiting takes no time, and its order is deterministic.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/executor.h"

namespace playfs::test {

/// Thread-safe, and without a lock.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(WallTime begin = {1'790'856'000'000'000'000})  // 2026-10-01T12:00:00Z
      : wall_(begin.nanoseconds) {}
  [[nodiscard]] WallTime wall() const override { return {wall_}; }
  [[nodiscard]] SteadyTime steady() const override { return SteadyTime(std::chrono::nanoseconds(steady_)); }
  void advance(std::chrono::nanoseconds by) {
    steady_ += by.count();
    wall_ += by.count();
  }
  /// Sets the wall clock alone.
  void set_wall(WallTime time) { wall_ = time.nanoseconds; }

 private:
  std::atomic<std::int64_t> wall_, steady_ = std::chrono::nanoseconds(std::chrono::hours(1)).count();
};

/// Runs tasks when the test says so, on its thread, in due order. Posting is thread-safe.
class ManualExecutor final : public Executor {
 public:
  explicit ManualExecutor(ManualClock& clock) : clock_(clock) {}

  void post(Task task) override { post_after(std::chrono::nanoseconds(0), std::move(task)); }
  void post_after(std::chrono::nanoseconds delay, Task task) override {
    std::lock_guard lock(mutex_);
    tasks_.emplace(clock_.steady() + delay, std::move(task));
  }

  /// Runs due tasks, and those that they post, without moving time.
  void run_due() {
    while (Task task = take(clock_.steady())) task();
  }
  /// Moves time by `by`, stopping at each task that becomes due to run it.
  void advance(std::chrono::nanoseconds by) {
    SteadyTime end = clock_.steady() + by;
    for (;;) {
      run_due();
      auto next = next_due();
      if (!next || *next > end) break;
      clock_.advance(*next - clock_.steady());
    }
    clock_.advance(end - clock_.steady());
  }
  /// Time until the next task is due; nullopt if there is none.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> until_next() {
    auto next = next_due();
    if (!next) return std::nullopt;
    return *next - clock_.steady();
  }
  /// Drops pending tasks, as a stopped executor does.
  void drop_all() {
    std::multimap<SteadyTime, Task> dropped;
    std::lock_guard lock(mutex_);
    dropped.swap(tasks_);
  }

 private:
  Task take(SteadyTime now) {
    std::lock_guard lock(mutex_);
    if (tasks_.empty() || tasks_.begin()->first > now) return {};
    Task task = std::move(tasks_.begin()->second);
    tasks_.erase(tasks_.begin());
    return task;
  }
  std::optional<SteadyTime> next_due() {
    std::lock_guard lock(mutex_);
    if (tasks_.empty()) return std::nullopt;
    return tasks_.begin()->first;
  }

  ManualClock& clock_;
  std::mutex mutex_;
  std::multimap<SteadyTime, Task> tasks_;
};

}  // namespace playfs::test
