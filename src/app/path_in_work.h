// Finds the work tree, and the path in it, that a person means by a path on this machine. Reads mount table and file
// system; stateless.
#pragma once

#include <string>

#include "app/command_context.h"
#include "app/mounted.h"
#include "base/result.h"

namespace playfs::app {

struct PathInWork {
  std::string named;   ///< as typed
  MountedPlace place;  ///< of its work tree
  std::string path;    ///< in the tree; "" for its root
};

/// It need not exist any more. A link in a work tree stands for itself, not for its target: only the folders above it
/// are resolved. `command`: what the hint suggests to type with the work tree's root.
Result<PathInWork> path_in_work(const CommandContext& context, const std::string& named, const std::string& command);

}  // namespace playfs::app
