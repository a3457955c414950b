// The options of a mount: what follows -o, as sshfs and mount(8) write it. Pure values.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "app/config.h"
#include "base/result.h"

namespace playfs::app {

struct MountOptions {
  std::optional<std::string> project;   ///< only this project's work tree, or
  std::optional<std::string> revision;  ///< that revision of it, read-only
  bool read_only = false;
  bool allow_other = false;
  bool safe_symlinks = false;  ///< refuse links that leave the tree; on by itself with allow_other
  bool no_exec = false;        ///< no program in it runs
  bool synchronous = false;    ///< each write is synced before it returns
  bool nonempty = false;       ///< mount over a directory that has files in it
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;
  std::optional<mode_t> umask;
};

/// Reads one comma-separated list. Options that are settings too (agent, refresh, …) go into `settings` as flags.
/// Of two that contradict each other the last counts. What belongs to mount(8), fstab or the boot (_netdev, nofail,
/// x-…, rw, defaults …) is ignored, and so is what every mount does or cannot do; what is unknown fails with
/// invalid_argument.
/// A comma or a backslash in a value stands behind a backslash, as in fstab(5) of other FUSE file systems.
Status parse_mount_options(std::string_view list, MountOptions& options, Settings& settings);

/// "name=value" for such a list, whatever the value holds: a service may have chosen it.
std::string mount_option(std::string_view name, std::string_view value);

}  // namespace playfs::app
