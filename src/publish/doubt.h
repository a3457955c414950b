// Decides whether something missing is gone, or only not shown yet (absences.h). A plain value.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace playfs::publish {

struct Doubt {
  SteadyTime since;   ///< every lookup since has missed it, and no two were far apart
  SteadyTime looked;  ///< the last lookup
  int looks = 0;      ///< lookups since then
  int gaps = 0;       ///< how often two lookups were far apart

  /// Records a lookup that missed it, and returns whether it is gone now: three lookups have missed it over at least
  /// `late_arrival`, which is how long reads may lag, or three that are far apart.
  bool missed(SteadyTime now, std::chrono::nanoseconds late_arrival) {
    // Nobody knows what happened in a gap: another caller may have seen it and had no reason to report it. So lookups
    // on both sides are not added up. Where the connection is so bad that all are far apart, each counts for itself.
    // However short reads may lag, lookups are as far apart as the backoff between attempts.
    constexpr std::chrono::nanoseconds longest_gap = std::chrono::minutes(4);
    const bool is_far_apart = looks > 0 && now - looked > std::max(2 * late_arrival, longest_gap);
    if (is_far_apart) ++gaps;
    if (is_far_apart || looks == 0) {
      since = now;
      looks = 0;
    }
    looked = now;
    ++looks;
    return (looks >= 3 && now - since >= late_arrival) || gaps >= 2;
  }
};

}  // namespace playfs::publish
