// What stat(2) says of a file: as long as that is the same, so is the file. Plain values.
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>

namespace playfs::clone {

struct Signature {
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t mtime = 0;  ///< nanoseconds, as ctime
  std::int64_t ctime = 0;
  std::uint32_t mode = 0;  ///< type and permissions

  bool operator==(const Signature&) const = default;

  /// Whether the file may have changed after it was looked at without this showing: its times are no older than
  /// `looked`, the file system's time before its content was read.
  [[nodiscard]] bool is_racy(std::int64_t looked) const { return std::max(mtime, ctime) >= looked; }
  /// Renaming changes the ctime of a file, and nothing else of it.
  [[nodiscard]] bool is_but_renamed(const Signature& other) const {
    return inode == other.inode && size == other.size && mtime == other.mtime && mode == other.mode;
  }
};

inline std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

inline Signature signature_of(const struct stat& info) {
  return {info.st_ino, static_cast<std::uint64_t>(info.st_size), nanoseconds(info.st_mtim), nanoseconds(info.st_ctim),
          info.st_mode};
}

}  // namespace playfs::clone
