// Keeps the state of a clone from the git repository that may be around it: git must neither add it nor remove it.
//
// A `.gitignore` hides the state, but what is ignored is what `git clean -X` removes. git clean leaves repositories
// alone, though, so the directories that work could be lost with look like one. Blocking; stateless.
#pragma once

#include <string>

#include "base/result.h"

namespace playfs::clone {

/// Below a clone's state folder: what is staged and queued, the index, and a second copy of the mark.
inline constexpr const char* kGuardedFolder = "state";

/// Makes what is missing of it. `folder` is a clone's state folder.
Status guard_from_git(const std::string& folder);

}  // namespace playfs::clone
