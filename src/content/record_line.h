// A record as one line of NDJSON, as files show it that grow. A pure function.
#pragma once

#include <string>

#include "model/records.h"

namespace playfs::content {

/// Without the line end, and with JSON's own escapes for what a terminal would interpret. Of a record that is larger
/// than services keep, the line says only that it is left out: `instead` is where to read it.
std::string record_line(const Record& record, const std::string& instead);

}  // namespace playfs::content
