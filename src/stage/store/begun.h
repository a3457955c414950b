// The `begun` mark: a file with the id of the stage's database. It distinguishes a missing, emptied or replaced
// database from a stage that was never begun; deletions, renames and links leave no other trace.
//
// It is written once a new database is on disk, directory entries included. So a first start that a crash or a power
// loss interrupted leaves no mark and simply starts over. Blocking; stateless.
#pragma once

#include <string>

#include "base/result.h"
#include "stage/store/tables.h"

namespace playfs::stage {

/// File name in the stage's directory.
inline constexpr const char* kBegun = "/begun";

bool is_begun(const std::string& directory);
/// REQUIRES: the operations log is empty, so that `stored` is complete.
Status mark_begun(const std::string& directory, Tables& stored);
/// `corrupt` if there is a mark and `stored` has another id or no base.
Status check_begun(const std::string& directory, Tables& stored);

}  // namespace playfs::stage
