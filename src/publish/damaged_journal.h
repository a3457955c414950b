// Moves a damaged journal aside, so that a new one can be made in its place.
//
// Plain functions over files. The caller holds the stage's lock.
#pragma once

#include <string>

#include "base/result.h"

namespace playfs::publish {

/// Prefix of the name of the folder that a damaged database is moved to; a number follows.
inline constexpr const char* kDamagedJournal = "damaged-";

/// Moves the database into a folder of its own in `directory` and returns that folder. REQUIRES: nobody has it open.
Result<std::string> set_journal_aside(const std::string& directory);

}  // namespace playfs::publish
