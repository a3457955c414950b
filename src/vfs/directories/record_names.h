// Names and times of files that show records. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "model/records.h"

namespace playfs::vfs {

/// "ID.json" -> "ID"; nullopt for any other form.
std::optional<std::string> stem_of(const std::string& name);
/// Whether the id can be requested (unlike ".") and used as a file name.
bool names_a_file(const std::string& id);
/// A title or name as the name of a link; empty if it cannot be one. "/" and control characters become "_".
std::string link_name(const std::string& title);
/// Whether a terminal that gets the name shows just that: no control or bidirectional characters.
bool is_shown_as_it_is(std::string_view name);
/// When the record was last changed.
WallTime record_time(const Record& record);

}  // namespace playfs::vfs
