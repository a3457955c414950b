// The program's log, for whoever operates it. Thread-safe.
//
// One line a fact, to stderr until `log_to_file` says otherwise. Secrets never go through here: whoever logs a
// request logs its method and path, not its headers. Text of strangers is escaped before it is written. A log that
// nobody reads stops nobody: lines that stderr does not take are left out, and how many is said when it takes some
// again.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace playfs {

enum class LogLevel { debug, info, warning, error };

void set_log_level(LogLevel level);
/// Appends to `path`, created 0600.
Status log_to_file(const std::string& path);

void log_debug(std::string_view line);
void log_info(std::string_view line);
void log_warning(std::string_view line);
void log_error(std::string_view line);

}  // namespace playfs
