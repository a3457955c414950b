// A private directory that is deleted with its object; in memory if there is room.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "fuzz.h"

namespace playfs::fuzz {

class Directory {
 public:
  Directory() {
    std::error_code missing;
    const bool in_memory = std::filesystem::is_directory("/dev/shm", missing);
    path_ = (in_memory ? "/dev/shm" : std::filesystem::temp_directory_path()) / "playfs-fuzz-XXXXXX";
    FUZZ_CHECK(mkdtemp(path_.data()));
  }
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace playfs::fuzz
