// Runs a program in place of this process, as far as its user, its shell and its terminal can tell, while this process
// waits to clean up behind it.
//
// The program stays in this process's group, so what the terminal sends reaches it directly, a pipeline stays one job,
// and the terminal needs no handing over. Signals that are sent to this process alone are passed on. If the terminal
// stops the program, this process stops too, so that the shell takes over; and both go on together.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace playfs::runtime {

struct CommandEnd {
  int code = 0;                           ///< its exit code; 128 + N after signal N; 126 or 127 if it did not start
  bool interrupted = false;               ///< by the terminal's SIGINT, which a shell script should end for, too
  std::optional<Error> not_started = {};  ///< why
};

/// Runs `words` in `directory`, with `variables` added to the environment, to its end. REQUIRES: no other thread is
/// running.
Result<CommandEnd> run_relayed(const std::vector<std::string>& words, const std::string& directory,
                               const std::map<std::string, std::string>& variables);

}  // namespace playfs::runtime
