// Since when looks for something have missed it: whether it is gone, or only not shown yet (absences.h). A plain value.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace playfs::publish {

struct Doubt {
  SteadyTime since;   ///< each look from then on has missed it
  SteadyTime looked;  ///< the last one
  int looks = 0;

  /// One more look has missed it, of which there has to be one in between the first one and the one that decides.
  /// `late_arrival`: how long reads may lag. Whether it is gone by now.
  bool missed(SteadyTime now, std::chrono::nanoseconds late_arrival) {
    // What it was in between nobody knows: it may have been seen by those who had no reason to say so.
    // However short reads may lag, looks are as far apart as the rests between attempts.
    constexpr std::chrono::nanoseconds longest_gap = std::chrono::minutes(4);
    if (looks == 0 || now - looked > std::max(2 * late_arrival, longest_gap)) *this = {now, now, 0};
    looked = now;
    return ++looks >= 3 && now - since >= late_arrival;
  }
};

}  // namespace playfs::publish
