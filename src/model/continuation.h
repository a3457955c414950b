// Where a manifest goes on whose files its record has no room for: a file of this name at the root, with text (see
// wire/continuation.h). Other clients see one plain file and carry it forward like any other. Plain values.
#pragma once

#include "model/manifest.h"

namespace playfs {

inline constexpr const char* kContinuationPath = ".playfs-manifest";

/// What other clients see of a manifest that goes on elsewhere: the file in which it does, as a plain file.
/// REQUIRES: a continuation that is not read.
void show_continuation(Manifest& manifest);

}  // namespace playfs
