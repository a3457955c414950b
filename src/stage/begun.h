// The mark that a stage was begun: a file with the number of its database, which tells a database that is gone, empty
// or another one from a stage that nobody has begun yet. Deletions, renames and links leave nothing else behind.
//
// It is made once all of a new database is on disk, its names included. So a first start that a crash or a power loss
// ended half-way has no mark, and is simply begun again. Blocking; no state of its own.
#pragma once

#include <string>

#include "base/result.h"
#include "stage/tables.h"

namespace playfs::stage {

/// Beside the database in a stage's directory.
inline constexpr const char* kBegun = "/begun";

bool is_begun(const std::string& directory);
/// REQUIRES: `stored` is all that the stage has: nothing of it is in the operations log.
Status mark_begun(const std::string& directory, Tables& stored);
/// `corrupt` where the mark is not that of `stored`, or that is as new.
Status check_begun(const std::string& directory, Tables& stored);

}  // namespace playfs::stage
