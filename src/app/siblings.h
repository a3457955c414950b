// The branches of a mounted project: revisions that head does not contain. Blocking; for commands.
#pragma once

#include "app/mounted.h"
#include "base/result.h"

namespace playfs::app {

/// Makes the mount query the service for branches and their contents; status.json lists them afterwards.
Status look_for_siblings(const MountedPlace& place);

}  // namespace playfs::app
