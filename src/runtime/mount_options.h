// The options of a mount: what follows -o, in the syntax of sshfs and mount(8). Pure values.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "runtime/config.h"

namespace playfs::runtime {

struct MountOptions {
  std::optional<std::string> project;   ///< only this project's work tree, or
  std::optional<std::string> revision;  ///< that revision of it, read-only
  bool read_only = false;
  bool allow_other = false;
  bool safe_symlinks = false;  ///< refuse links that leave the tree; implied by allow_other
  bool no_exec = false;        ///< no program in it runs
  bool synchronous = false;    ///< each write is synced before it returns
  bool nonempty = false;       ///< mount over a directory that is not empty
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;
  std::optional<mode_t> umask;
};

/// Parses one comma-separated list. Options that are settings too (agent, refresh, …) go into `settings` as flags.
/// Later options override earlier ones. Options for mount(8), fstab or the boot (_netdev, nofail, x-…, rw, defaults …)
/// are ignored, as are those that every mount implies or cannot support. Errors: invalid_argument for unknown ones. A
/// backslash escapes a comma or a backslash in a value, as in fstab(5) of other FUSE file systems.
Status parse_mount_options(std::string_view list, MountOptions& options, Settings& settings);

/// "name=value" for such a list. Escapes any value: a service may have chosen it.
std::string mount_option(std::string_view name, std::string_view value);

}  // namespace playfs::runtime
