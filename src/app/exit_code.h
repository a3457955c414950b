// The program's exit codes. Pure values.
#pragma once

#include "base/result.h"

namespace playfs::app {

enum class ExitCode {
  done = 0,
  failed = 1,
  usage = 2,
  branched = 3,  ///< published as a branch, or conflicts left
  pending = 4,   ///< rate-limited, or not published yet
  not_found = 5,
  forbidden = 6,  ///< or not signed in
  unreachable = 7,
  mount_failed = 32  ///< as mount(8) expects of its helpers
};

/// The only place that maps an ErrorCode to an exit code.
ExitCode exit_code_for(ErrorCode code);

}  // namespace playfs::app
