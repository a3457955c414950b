// How stores keep times: as whole microseconds since the epoch. Pure.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace playfs::service {

inline std::int64_t to_column(WallTime time) { return time.nanoseconds / 1000; }
inline WallTime from_column(std::int64_t microseconds) { return {microseconds * 1000}; }

inline std::int64_t to_microseconds(std::chrono::seconds duration) {
  return std::chrono::microseconds(duration).count();
}

}  // namespace playfs::service
