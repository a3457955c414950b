// Whether events keep known data current, so that nothing need be requested again. Thread-safe.
//
// Time is divided into periods in which no event was missed. What was requested in the current period and not named by
// an event since is current, up to the time an event takes to arrive. A lost connection suspends the period; a
// connection that resumes at the same position continues it.
#pragma once

#include <atomic>
#include <cstdint>

namespace playfs::content {

class Live {
 public:
  /// The current period; 0 while there are no events. Call it before sending the request whose response it will date.
  [[nodiscard]] std::uint64_t period() const { return is_up_ ? period_.load() : 0; }
  [[nodiscard]] bool is_current(std::uint64_t period) const { return period != 0 && period == this->period(); }

  void begin_anew() { ++period_; }
  void set_up(bool is_up) { is_up_ = is_up; }

 private:
  std::atomic<std::uint64_t> period_ = 0;
  std::atomic<bool> is_up_ = false;
};

}  // namespace playfs::content
