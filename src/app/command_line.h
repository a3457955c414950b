// The command line as a value: an action, or the text to print instead (help, version, a usage error). Pure: parsing
// has no side effects.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "app/command_context.h"
#include "app/exit_code.h"
#include "base/result.h"

namespace playfs::app {

struct Invocation {
  bool json = false;
  std::optional<std::string> site;  ///< --site
  bool mount_helper = false;        ///< called by mount(8): use its exit codes
  bool without_settings = false;    ///< the action reads the settings itself, or not at all
  std::function<Result<ExitCode>(CommandContext&)> action;
};

struct Help {
  std::string text;
  /// `usage` if no command was given, rather than help requested.
  ExitCode code = ExitCode::done;
};

struct UsageError {
  bool json = false;
  Error error;
};

std::variant<Invocation, Help, UsageError> parse_command_line(std::vector<std::string> argv);

}  // namespace playfs::app
