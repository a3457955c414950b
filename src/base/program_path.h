// Where programs are looked for. Reads PATH and the file system; no shared state.
#pragma once

#include <string>

namespace playfs {

/// Whether one of the directories in PATH has a file of this name that this user can see.
bool is_in_path(const std::string& program);

}  // namespace playfs
