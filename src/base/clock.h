// Injectable time, so that tests and the simulator can control it. Implementations are thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace playfs {

/// Nanoseconds since the Unix epoch, UTC.
struct WallTime {
  std::int64_t nanoseconds = 0;
  auto operator<=>(const WallTime&) const = default;
  [[nodiscard]] std::int64_t seconds() const { return nanoseconds / 1'000'000'000; }
};

using SteadyTime = std::chrono::steady_clock::time_point;

class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual WallTime wall() const = 0;
  [[nodiscard]] virtual SteadyTime steady() const = 0;
};

/// The system clocks.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] WallTime wall() const override;
  [[nodiscard]] SteadyTime steady() const override;
};

/// "2026-10-01T12:00:00.123456Z": UTC with microseconds, so that strings sort chronologically.
std::string format_iso8601(WallTime time);

/// Parses an ISO 8601 date-time with any number of fraction digits and `Z` or a numeric offset (default UTC), or any
/// prefix down to the year ("2026-10", "2026-10-01T12:00"). A prefix denotes its first instant, or with `end_of_period`
/// its last nanosecond ("2026-10": just before November).
std::optional<WallTime> parse_iso8601(std::string_view text, bool end_of_period = false);

}  // namespace playfs
