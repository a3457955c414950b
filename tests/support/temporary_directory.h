// A private directory for one test, removed with everything in it.
#pragma once

#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <string>

namespace playfs::test {

class TemporaryDirectory {
 public:
  TemporaryDirectory() : TemporaryDirectory(std::filesystem::temp_directory_path()) {}
  /// Where there is a file system in memory, in it.
  static TemporaryDirectory in_memory() {
    std::error_code missing;
    return TemporaryDirectory(
        std::filesystem::is_directory("/dev/shm", missing) ? "/dev/shm" : std::filesystem::temp_directory_path());
  }
  ~TemporaryDirectory() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
    if (error) std::fprintf(stderr, "%s stays behind: %s\n", path_.c_str(), error.message().c_str());
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  /// Absolute and without links.
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  explicit TemporaryDirectory(const std::filesystem::path& place)
      : path_((std::filesystem::canonical(place) / "playfs-test-XXXXXX").string()) {
    if (mkdtemp(path_.data())) return;
    std::perror(path_.c_str());
    std::abort();
  }
  std::string path_;
};

}  // namespace playfs::test
