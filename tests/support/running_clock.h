// A clock that runs by itself: for code that waits on real threads, which ManualClock cannot drive because it stands
// still between calls. The test may advance it, or let it run faster.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace playfs::test {

class RunningClock final : public Clock {
 public:
  explicit RunningClock(int times = 1, WallTime begin = SystemClock().wall())
      : times_(times), wall_(begin.nanoseconds) {}
  [[nodiscard]] WallTime wall() const override { return {wall_ + passed().count()}; }
  [[nodiscard]] SteadyTime steady() const override { return steady_ + passed(); }
  void advance(std::chrono::nanoseconds by) { advanced_ += by.count(); }

 private:
  [[nodiscard]] std::chrono::nanoseconds passed() const {
    return (std::chrono::steady_clock::now() - steady_) * times_ + std::chrono::nanoseconds(advanced_);
  }
  const int times_;
  const std::int64_t wall_;
  const SteadyTime steady_ = std::chrono::steady_clock::now();
  std::atomic<std::int64_t> advanced_ = 0;
};

}  // namespace playfs::test
