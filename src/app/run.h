// The program: everything that main() does.
#pragma once

#include <string>
#include <vector>

#include "runtime/io.h"

namespace playfs::app {

/// Runs one command line, program name first, and returns its exit code.
int run(std::vector<std::string> argv, runtime::Io& io);

/// The same with the process's own streams and environment.
int run_in_this_process(int argc, char** argv);

}  // namespace playfs::app
