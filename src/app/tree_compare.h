// What differs between two trees of a mount, judged by what the mount tells of their files. Blocking; for commands.
#pragma once

#include <set>
#include <string>

#include "base/result.h"

namespace playfs::app {

/// Paths, relative to both, of files and links that are in one of two directories and not, or not the same, in the
/// other. Files whose hash is not known count as different. A directory that does not exist is an empty one.
Result<std::set<std::string>> differing_paths(const std::string& before, const std::string& after);

}  // namespace playfs::app
