// Finds what in a clone's directory is not as its index says. Costs a stat(2) for each file, and reads none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "clone/index.h"
#include "clone/plain_directory.h"

namespace playfs::clone {

struct Found {
  std::string path;
  bool is_directory = false;
};

/// What could not be looked at, with the reason. Not taken for deleted.
struct Unread {
  std::string path;
  std::string why;
};
/// Whether an error is about this one file or directory: it may not be read, or its path is too long.
inline bool is_about_access(ErrorCode code) {
  return code == ErrorCode::permission_denied || code == ErrorCode::name_too_long;
}

struct Scanned {
  std::vector<Found> changed;           ///< files that changed or may have, and whatever has no row; not what is below
  std::vector<std::string> gone;        ///< rows of what is not there, or is of another type; children first
  std::vector<std::string> local_only;  ///< rows of local-only names that are still there
  std::vector<Unread> unread;
};

struct Look {
  std::int64_t began = 0;  ///< the file system's time before anything was looked at
  Scanned found;
};

Result<Look> look(const PlainDirectory& directory, const Index& index);

}  // namespace playfs::clone
