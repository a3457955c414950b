// A command's view of its process: streams, terminals, environment, working directory, clock.
//
// Commands use nothing else of the process, so that tests can run them in-process with their own environment. For one
// thread; everything referred to must outlive the Io.
#pragma once

#include <functional>
#include <istream>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/random.h"

namespace playfs::runtime {

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
  std::size_t columns = 80;  ///< of the terminal, if there is one

  /// nullopt if unset or empty.
  [[nodiscard]] std::optional<std::string> variable(std::string_view name) const;
  /// `path` made absolute by the working directory, without "." and "..", which mean what they mean to the kernel:
  /// `link/..` is above the link's target. Other links are not followed. A ".." after something that is not a
  /// directory, or that does not answer, is kept, and the path is invalid.
  [[nodiscard]] std::string absolute(std::string_view path) const;
};

}  // namespace playfs::runtime
