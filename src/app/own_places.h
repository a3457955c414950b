// The directories in which a mount keeps its own files, and why none of them may lie under a mount of playfs.
//
// A mount reads and writes those files while it answers the kernel. Were they under the mount itself, each answer would
// wait for another one of the same process: nothing moves any more, and no signal ends it. Blocking; no shared state.
#pragma once

#include <string>
#include <vector>

#include "app/context.h"
#include "app/mounted.h"
#include "app/source.h"
#include "base/result.h"

namespace playfs::app {

struct OwnPlace {
  std::string what;   ///< for a person: "staged changes"
  std::string path;   ///< absolute, as playfs will open it: links are not resolved, it need not exist
  std::string mover;  ///< what puts it elsewhere: "XDG_STATE_HOME"
};

/// What a mount of `source` opens while it is served.
std::vector<OwnPlace> own_places(const Context& context, const Source& source);

/// Refuses a mount at `mount_point` (a real path) that one of `own` would be reached through, and places that lie in
/// another mount of playfs. Looks at each step of each path, links included: a link that the mount hides leads nowhere
/// any more, wherever it pointed.
Status check_own_places(const std::vector<OwnPlace>& own, const std::string& mount_point,
                        const std::vector<MountEntry>& mounts);

}  // namespace playfs::app
