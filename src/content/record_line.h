// A record as one line of NDJSON, for files that grow in place. A pure function.
#pragma once

#include <string>

#include "model/records.h"

namespace playfs::content {

/// Without the line end, and with JSON's own escapes for what a terminal would interpret. For a record larger than
/// services keep, the line only says that it is left out and where to read it (`instead`).
std::string record_line(const Record& record, const std::string& instead);

}  // namespace playfs::content
