// The branches of a mounted project: revisions that head does not hold. Blocking; for commands.
#pragma once

#include "app/mounted.h"
#include "base/result.h"

namespace playfs::app {

/// Has the mount look for branches, and for what they are, which asks the service: status.json names them from then on.
Status look_for_siblings(const MountedPlace& place);

}  // namespace playfs::app
