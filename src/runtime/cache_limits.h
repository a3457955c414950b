// How large the cache on disk may grow, and how its parts share that. A pure function.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/config.h"

namespace playfs::runtime {

struct CacheLimits {
  std::uint64_t total = 0;  ///< bytes
  std::uint64_t objects = 0;
  std::uint64_t records = 0;
};

/// From the setting cache_size; 2 GiB by default.
CacheLimits cache_limits(const Settings& settings, std::string_view site = {});

}  // namespace playfs::runtime
