// The command line as a value: what is to be done, or what there is to say instead (help, version, a usage error).
// Pure: parsing touches nothing.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "app/context.h"
#include "app/exit_code.h"
#include "base/result.h"

namespace playfs::app {

struct Invocation {
  bool json = false;
  std::optional<std::string> site;  ///< --site
  bool mount_helper = false;        ///< called by mount(8): exit codes are mount(8)'s
  std::function<Result<ExitCode>(Context&)> action;
};

struct Help {
  std::string text;
  /// `usage` where nobody asked for it: no command was given.
  ExitCode code = ExitCode::done;
};

struct UsageError {
  bool json = false;
  Error error;
};

std::variant<Invocation, Help, UsageError> parse_command_line(std::vector<std::string> argv);

}  // namespace playfs::app
