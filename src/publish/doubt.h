// Decides whether something missing is gone, or only not shown yet (absences.h). A plain value.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace playfs::publish {

struct Doubt {
  SteadyTime since;   ///< every lookup since has missed it
  SteadyTime looked;  ///< the last lookup
  int looks = 0;

  /// Records a lookup that missed it, and returns whether it is gone now: at least one lookup is required between the
  /// first and the deciding one. `late_arrival`: how long reads may lag.
  bool missed(SteadyTime now, std::chrono::nanoseconds late_arrival) {
    // Nobody knows what happened in such a gap: another caller may have seen it and had no reason to report it.
    // However short reads may lag, looks are as far apart as the backoff between attempts.
    constexpr std::chrono::nanoseconds longest_gap = std::chrono::minutes(4);
    if (looks == 0 || now - looked > std::max(2 * late_arrival, longest_gap)) *this = {now, now, 0};
    looked = now;
    return ++looks >= 3 && now - since >= late_arrival;
  }
};

}  // namespace playfs::publish
