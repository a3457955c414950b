// Compares two trees of a mount by the attributes of their files. Blocking; for commands.
#pragma once

#include <set>
#include <string>

#include "base/result.h"

namespace playfs::app {

/// The relative paths of files and links that exist in only one of two directories, or differ. Files whose hash is
/// unknown count as different. A missing directory counts as empty.
Result<std::set<std::string>> differing_paths(const std::string& before, const std::string& after);

}  // namespace playfs::app
