// Names and times of files that show records. Pure functions.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "model/records.h"

namespace playfs::vfs {

/// "ID.json" -> "ID"; nullopt for any other form.
std::optional<std::string> stem_of(const std::string& name);
/// Whether the id can be requested (unlike ".") and used as a file name.
bool names_a_file(const std::string& id);
/// When the record was last changed.
WallTime record_time(const Record& record);

}  // namespace playfs::vfs
