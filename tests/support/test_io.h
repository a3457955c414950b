// An Io of strings, for running commands in the test's own process.
#pragma once

#include <sstream>
#include <string>

#include "runtime/io.h"

namespace playfs::test {

struct TestIo {
  std::istringstream in;
  std::ostringstream out, err;
  SystemClock clock;
  SystemRandom random;
  runtime::Io io{in, out, err, clock, random};
};

}  // namespace playfs::test
