// The versions of what playfs runs with. Blocking: loads libraries that were not needed so far.
#pragma once

#include "model/json.h"

namespace playfs::app {

/// "libcurl": "libcurl/7.88.1 …", null if it is not installed.
JsonObject library_versions();

/// "" if it is not known which commit the program was built from.
std::string build_commit();

}  // namespace playfs::app
