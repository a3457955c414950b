// The directory that is to be mounted on. Blocking.
#pragma once

#include <string>
#include <vector>

#include "app/own_places.h"
#include "base/result.h"

namespace playfs::app {

/// Checks that something can be mounted at `path` (absolute) and returns its real path. A mount of playfs whose
/// process died is detached first. Fails where the mount would hide one of `own`, where `path` is no directory, is a
/// live mount already, or is not empty (unless `nonempty`), and where this machine has no FUSE. Creates nothing.
Result<std::string> prepare_mount_point(const std::string& path, bool nonempty, const std::vector<OwnPlace>& own);

/// Whether this process may use /dev/fuse.
Status check_fuse();

/// Detaches a mount of playfs at `path` whose process died; does nothing where there is none. `busy` where it is a dead
/// mount of something else. REQUIRES: as Probe::Found has it.
Status detach_dead_mount(const std::string& path);

}  // namespace playfs::app
