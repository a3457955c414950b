// The only place that maps an ErrorCode to an errno for the kernel. Pure.
#pragma once

#include "base/result.h"

namespace playfs::fuse {

/// A positive errno.
int errno_of(ErrorCode code);

}  // namespace playfs::fuse
