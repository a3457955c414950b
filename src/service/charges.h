// The refusal of a write that its charge has no room for, which is the same from every store. Pure.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "service/store.h"

namespace playfs::service {

/// The limit is reached, and the write that is in the way expires after so many microseconds.
Error limit_reached(const Charge& charge, std::int64_t microseconds);

/// An allowance of 0.
Error writes_not_allowed(const Charge& charge);

}  // namespace playfs::service
