// Prepares the directory to mount at. Blocking.
#pragma once

#include <string>
#include <vector>

#include "app/own_places.h"
#include "base/result.h"

namespace playfs::app {

/// Checks that something can be mounted at `path` (absolute) and returns its real path. First detaches a mount of
/// playfs whose process died. Fails if the mount would hide one of `own`; if `path` is not a directory, is a live mount
/// already, or is not empty (unless `nonempty`); and if this machine has no FUSE. Creates nothing.
Result<std::string> prepare_mount_point(const std::string& path, bool nonempty, const std::vector<OwnPlace>& own);

/// Whether this process may use /dev/fuse.
Status check_fuse();

/// Detaches a mount of playfs at `path` whose process died, if there is one.
/// Errors: busy for a dead mount of another file system. REQUIRES: `path` is a Probe::Answer::real.
Status detach_dead_mount(const std::string& path);

}  // namespace playfs::app
