// The operator's log. Thread-safe.
//
// One line per event, to stderr until `log_to_file` is called. Never log secrets: of a request log the method and path,
// not the headers. Untrusted text is escaped. Logging never blocks: lines that stderr cannot take are dropped, and
// their number is logged once it accepts output again.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace playfs {

enum class LogLevel { debug, info, warning, error };

void set_log_level(LogLevel level);
/// Appends to `path`, created with mode 0600.
Status log_to_file(const std::string& path);

void log_debug(std::string_view line);
void log_info(std::string_view line);
void log_warning(std::string_view line);
void log_error(std::string_view line);

}  // namespace playfs
