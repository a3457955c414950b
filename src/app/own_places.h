// The directories in which a mount keeps its own files, none of which may be under a mount of playfs.
//
// A mount reads and writes those files while it answers the kernel. If they were under the mount itself, each answer
// would wait for another one of the same process: a deadlock that no signal ends. Blocking; no shared state.
#pragma once

#include <string>
#include <vector>

#include "app/command_context.h"
#include "app/mounted.h"
#include "base/result.h"
#include "runtime/source.h"

namespace playfs::app {

struct OwnPlace {
  std::string what;   ///< for people: "staged changes"
  std::string path;   ///< absolute, as playfs will open it: links are not resolved, it need not exist
  std::string mover;  ///< the variable that moves it: "XDG_STATE_HOME"
};

/// The directories that a mount of `source` uses while it serves.
std::vector<OwnPlace> own_places(const CommandContext& context, const runtime::Source& source);

/// Refuses a mount at `mount_point` (a real path) that the path to one of `own` goes through, and any of `own` that is
/// in another mount of playfs. Checks every step of each path, links included: a link that the mount hides is lost.
Status check_own_places(const std::vector<OwnPlace>& own, const std::string& mount_point,
                        const std::vector<runtime::MountEntry>& mounts);

}  // namespace playfs::app
