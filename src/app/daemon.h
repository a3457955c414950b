// Going to the background: the command returns when the daemon says that it is ready, or why it is not.
#pragma once

#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace playfs::app {

/// The daemon's line to the command that started it. Dropped without a word, it tells the command that the daemon
/// died.
class StartReport {
 public:
  explicit StartReport(UniqueFd line) : line_(std::move(line)) {}
  /// The command returns now; this process's stdout and stderr go to `log_path` from here on.
  Status ready(const std::string& log_path);
  void failed(const Error& error);

 private:
  UniqueFd line_;
};

/// Forks. In the child, which has a session of its own and nothing open but the standard streams: the line to the
/// command. In the parent nothing, once the child is ready, or the child's error. REQUIRES: no other thread runs, and
/// nothing is open that the child needs.
Result<std::optional<StartReport>> go_to_background();

}  // namespace playfs::app
