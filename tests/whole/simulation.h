// One simulated run, determined by a seed, and what is wrong with its result.
#pragma once

#include <cstdint>
#include <string>

#include "whole/faults.h"
#include "whole/oracle.h"

namespace playfs::sim {

struct Nature {
  Fault fault = Fault::none;
  bool is_traced = false;
};

/// Two to five clients, foreign clients that move head blindly, a bad network, crashes, a service that limits writes
/// and forgets keys, users who keep writing; then a visitor. The claims are checked against the service's log, the work
/// trees on disk, and what users wrote and were told.
Verdict simulate(std::uint64_t seed, const Nature& nature = {});

}  // namespace playfs::sim
