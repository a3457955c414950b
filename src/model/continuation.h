// A manifest too large for its record continues in a text file of this name at the root (see wire/continuation.h).
// Other clients see a plain file and carry it forward like any other. Plain values.
#pragma once

#include "model/manifest.h"

namespace playfs {

inline constexpr const char* kContinuationPath = ".playfs-manifest";

/// Presents an unread continuation as other clients see it: as a plain file. REQUIRES: `manifest.continuation` is set
/// and not read.
void show_continuation(Manifest& manifest);

}  // namespace playfs
