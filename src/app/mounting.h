// Mounts: in this process, which then serves until the end, or in a daemon. Blocking.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/command_context.h"
#include "base/result.h"
#include "runtime/mount_options.h"
#include "runtime/source.h"

namespace playfs::app {

struct MountPlan {
  runtime::Source source;
  std::string directory;                    ///< to mount at, absolute; or "/dev/fd/N"
  runtime::MountOptions options;            ///< parsed from `lists`
  std::vector<std::string> lists = {};      ///< as after -o
  std::optional<std::string> project = {};  ///< by id or name: mounts only this one's work tree
  bool ends_with_parent = false;            ///< unmounts when the process that started this one has ended
};

/// Serves until it is unmounted or stopped by a signal. Calls `ready` once it is mounted.
Status serve_mount(CommandContext& context, MountPlan plan, const std::function<Status()>& ready);

/// Starts a daemon that serves, and returns its pid once the mount answers. REQUIRES: no other thread is running.
Result<pid_t> mount_in_background(CommandContext& context, const MountPlan& plan);

}  // namespace playfs::app
