// An Io of strings, for running commands in the test's own process.
#pragma once

#include <sstream>
#include <string>

#include "app/io.h"

namespace playfs::app {

struct TestIo {
  std::istringstream in;
  std::ostringstream out, err;
  SystemClock clock;
  SystemRandom random;
  Io io{in, out, err, clock, random};
};

}  // namespace playfs::app
