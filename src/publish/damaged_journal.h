// A journal whose database is damaged: kept beside the new one that is made in its place.
//
// Plain functions over files, for whoever has the stage's lock.
#pragma once

#include <string>

#include "base/result.h"

namespace playfs::publish {

/// In front of the number of the folder that a damaged database was moved to.
inline constexpr const char* kDamagedJournal = "damaged-";

/// Moves the database into a folder of its own in `directory`; answers which. REQUIRES: nobody has it open.
Result<std::string> set_journal_aside(const std::string& directory);

}  // namespace playfs::publish
