// RAII file descriptors and shared file operations. No shared state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace playfs {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd();
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// Writes all of `data` at `offset`, retrying short writes.
Status write_all_at(int fd, std::string_view data, std::uint64_t offset);
/// Writes all of `data` at the current position.
Status write_all(int fd, std::string_view data);

/// Reads up to `size` bytes at `offset`; fewer only at end of file.
Result<std::string> read_at(int fd, std::uint64_t offset, std::size_t size);
/// Reads the whole file; file_too_big if it exceeds `ceiling` bytes.
Result<std::string> read_file(const std::string& path, std::size_t ceiling);

/// Atomically replaces `path`: writes a sibling, syncs it, renames it over `path` and syncs the directory. After a
/// crash either the old or the new content is there.
Status write_file_atomically(const std::string& path, std::string_view data, unsigned mode = 0600);

Status sync_directory(const std::string& path);

/// Creates a private directory (0700) and its missing parents; an existing one is kept private (private_place.h).
Status make_private_directory(const std::string& path);

}  // namespace playfs
