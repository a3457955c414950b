// One simulated run, chosen by a seed, and what is wrong with what it left behind.
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

/// Two to five clients, strangers who move head blindly, a bad network, crashes, a service that limits writes and
/// forgets keys; users who write on meanwhile; then a visitor. What must hold is checked from the log that the service
/// has, from the work trees on disk, and from what users wrote and were told.
Verdict simulate(std::uint64_t seed, const Nature& nature = {});

}  // namespace playfs::sim
