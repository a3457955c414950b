// Daemonizing: the command returns once the daemon reports that it is ready, or why it is not.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace playfs::runtime {

/// The daemon's connection to the command that started it. Closing it without a report means that the daemon died.
class StartReport {
 public:
  explicit StartReport(UniqueFd line) : line_(std::move(line)) {}
  /// Lets the command return. From here on this process has its own session, and its stdout and stderr go to
  /// `log_path`.
  Status ready(const std::string& log_path);
  void failed(const Error& error);

 private:
  UniqueFd line_;
};

struct Background {
  std::optional<StartReport> report = {};  ///< in the daemon
  pid_t daemon = 0;                        ///< in the command
};

/// Forks. Returns in the child, which has only the standard streams and `kept` open; and in the parent once the child
/// is ready, or with the child's error. REQUIRES: no other thread is running.
Result<Background> go_to_background(std::vector<int> kept = {});

}  // namespace playfs::runtime
