// The errors for a write over its limit, the same from every store. Pure.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "service/store.h"

namespace playfs::service {

/// The limit is reached; there is room again in so many microseconds.
Error limit_reached(const Charge& charge, std::int64_t microseconds);

/// The error for an allowance of 0.
Error writes_not_allowed(const Charge& charge);

}  // namespace playfs::service
