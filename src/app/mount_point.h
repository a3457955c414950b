// Prepares the directory to mount at. Blocking.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/own_places.h"
#include "base/result.h"

namespace playfs::app {

/// Checks that something can be mounted at `path` (absolute) and returns its real path. Fails if the mount would hide
/// one of `own`, or if this machine has no FUSE. Then detaches a mount of playfs at `path` whose process died, and
/// fails if `path` is not a directory, is a live mount already, or is not empty (unless `nonempty`). Creates nothing.
Result<std::string> prepare_mount_point(const std::string& path, bool nonempty, const std::vector<OwnPlace>& own);

/// Whether this process may use /dev/fuse. Errors name the other ways to work on a project.
Status check_fuse();

/// The same error, whose hint also names the ways to work on a project where nothing can be mounted.
Error with_other_ways(Error refusal);

/// Whether a descriptor that this process was started with is a /dev/fuse that somebody has mounted.
Status check_passed_device(int fd);
/// Where that mount is, if this process sees it and the kernel says which one it is (since Linux 6.13).
std::optional<std::string> mount_point_of(int fd);

/// Detaches a mount of playfs at `path` whose process died, if there is one.
/// Errors: busy for a dead mount of another file system. REQUIRES: `path` is a Probe::Answer::real.
Status detach_dead_mount(const std::string& path);

}  // namespace playfs::app
