// The one place where an ErrorCode becomes an errno for the kernel. Pure.
#pragma once

#include "base/result.h"

namespace playfs::fuse {

/// A positive errno.
int errno_of(ErrorCode code);

}  // namespace playfs::fuse
