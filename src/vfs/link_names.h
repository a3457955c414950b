// Titles and names of records as names of links. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace playfs::vfs {

/// A title or name as the name of a link; empty if it cannot be one. "/" and control characters become "_".
std::string link_name(const std::string& title);
/// Whether a terminal that gets the name shows just that: no control or bidirectional characters.
bool is_shown_as_it_is(std::string_view name);

}  // namespace playfs::vfs
