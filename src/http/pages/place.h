// The revision of a project, and the file in it, that an address names. Pure except for reading.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "http/pages/reader.h"

namespace playfs::http {

struct Place {
  Project project;
  Revision revision;
};

/// Errors: not_found, also for another project's revision.
Result<Place> find_place(Reader& reader, const std::string& project, const std::string& revision);

/// Owned by the place. Errors: not_found.
Result<const FileEntry*> find_file(const Place& place, const std::string& path);

/// The last name of a path.
std::string_view file_name(std::string_view path);

}  // namespace playfs::http
