// A private directory for one test, removed at its end.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace playfs::cache {

class TemporaryDirectory {
 public:
  TemporaryDirectory() : path_(testing::TempDir() + "playfs-cache-XXXXXX") {
    if (!mkdtemp(path_.data())) std::abort();
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace playfs::cache
