// Finds what in a clone's directory is not as its index says. Costs a stat(2) for each file, and reads none.
#pragma once

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

struct Scanned {
  std::vector<Found> changed;           ///< files that changed or may have, and whatever has no row; not what is below
  std::vector<std::string> gone;        ///< rows of what is not there, or is of another type; children first
  std::vector<std::string> local_only;  ///< rows of local-only names that are still there
};

Result<Scanned> scan(const PlainDirectory& directory, const Index& index);

}  // namespace playfs::clone
