// Runs commands in the test's own process, in a temporary home, against the embedded playground.
#pragma once

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/temporary_directory.h"

namespace playfs::app {

class CommandTest : public testing::Test {
 protected:
  struct Ran {
    int code = 0;
    std::string out, err;
  };
  /// `playfs WORDS…` in the home directory.
  Ran run(std::vector<std::string> words, const std::string& input = {});

  void write(const std::string& path, const std::string& text, bool executable = false);
  [[nodiscard]] std::string read(const std::string& path) const;

  /// Replaces what differs from run to run (ids, times, paths) by stable text: <id 1> is the first id that this test
  /// saw, wherever it occurs again.
  std::string stable(std::string text);

  /// Compares with tests/cli/golden/NAME; rewrites it if PLAYFS_ACCEPT is set in the environment.
  void expect_golden(const std::string& name, const std::string& text);

  const test::TemporaryDirectory directory_;
  const std::string& home_ = directory_.path();
  std::map<std::string, std::string, std::less<>> environment_ = {{"HOME", home_}, {"PLAYFS_AGENT", "ada"}};

 private:
  std::map<std::string, std::size_t> ids_;
};

}  // namespace playfs::app
