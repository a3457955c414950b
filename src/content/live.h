// Whether the service tells of changes, so that what is known stays current without being asked for. Thread-safe.
//
// Time is divided into periods in which no change went unheard. What was requested in the current period, and that no
// event has named since, is as the service has it, but for the time an event takes to arrive. A lost connection
// suspends the period; one that resumes where it ended continues it.
#pragma once

#include <atomic>
#include <cstdint>

namespace playfs::content {

class Live {
 public:
  /// The current period; 0 while nothing is told. Call before the request that it is remembered for.
  [[nodiscard]] std::uint64_t period() const { return is_up_ ? period_.load() : 0; }
  [[nodiscard]] bool is_current(std::uint64_t period) const { return period != 0 && period == this->period(); }

  void begin_anew() { ++period_; }
  void set_up(bool is_up) { is_up_ = is_up; }

 private:
  std::atomic<std::uint64_t> period_ = 0;
  std::atomic<bool> is_up_ = false;
};

}  // namespace playfs::content
