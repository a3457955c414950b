// What a command sees of the process it runs in: streams, terminals, environment, working directory, clock.
//
// Commands touch nothing of the process but this, so that tests run them in-process with an environment of their
// own. For one thread; everything referred to must outlive the Io.
#pragma once

#include <functional>
#include <istream>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/random.h"

namespace playfs::app {

struct Io {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  const Clock& clock;
  Random& random;
  std::map<std::string, std::string, std::less<>> environment = {};
  std::string directory = "/";  ///< the working directory, absolute
  bool in_is_terminal = false;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  std::size_t columns = 80;  ///< of the terminal, where there is one

  /// nullopt where it is unset or empty.
  [[nodiscard]] std::optional<std::string> variable(std::string_view name) const;
  /// `path` made absolute by the working directory, without "." and "..". Those mean what they mean to the kernel:
  /// `link/..` is above what the link leads to. Other links are not followed. Where there is no directory in front of a
  /// "..", or nothing that answers, it stays, and the path means nothing.
  [[nodiscard]] std::string absolute(std::string_view path) const;
};

/// Runs one command line, program name first, and returns its exit code. The whole program but for main().
int run(std::vector<std::string> argv, Io& io);

/// The same with the process's own streams and environment.
int run_in_this_process(int argc, char** argv);

}  // namespace playfs::app
