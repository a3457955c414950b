// The directory that is mounted on: getting it ready, and unmounting it. Blocking.
#pragma once

#include <string>

#include "base/result.h"

namespace playfs::app {

/// Checks that something can be mounted at `path` (absolute) and returns its real path. A mount of playfs whose
/// process died is detached first. Fails where it is no directory, is a live mount already, or is not empty (unless
/// `nonempty`), and where this machine has no FUSE.
Result<std::string> prepare_mount_point(const std::string& path, bool nonempty);

enum class Unmount {
  normal,  ///< fails with busy where something is open there
  lazy,    ///< detached from the tree now, ended when the last user is gone
};
/// umount2(2) for root, fusermount3 for everybody else.
Status unmount(const std::string& path, Unmount how);

}  // namespace playfs::app
