// One simulated run, chosen by a seed, and what is wrong with what it left behind.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/client.h"

namespace playfs::sim {

struct Verdict {
  std::vector<std::string> wrong;  ///< empty: all promises were kept
  std::size_t revisions = 0, merges = 0, branches = 0, crashes = 0;
};

/// Two to five clients, strangers who move head blindly, a bad network, crashes, a service that limits writes and
/// forgets keys; then a visitor. What must hold is checked from the log that the service has, and from what users were
/// told.
Verdict simulate(std::uint64_t seed, Fault fault = Fault::none);

}  // namespace playfs::sim
