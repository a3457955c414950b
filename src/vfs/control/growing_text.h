// A text that only grows, of any size, in bounded memory: a long one is in a file without a name, which the disk gets
// back when the text is gone. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace playfs::vfs {

class GrowingText {
 public:
  /// Bytes that are kept in memory.
  static constexpr std::size_t kInMemory = 4 << 20;

  /// `directory`: for the file; created when it is needed.
  GrowingText(std::string directory, std::string text) : directory_(std::move(directory)), short_(std::move(text)) {
    size_ = short_.size();
  }

  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// After a failure the text is as it was.
  [[nodiscard]] Status append(std::string_view more);
  [[nodiscard]] Result<std::string> read(std::uint64_t offset, std::size_t size) const;
  /// All of it; nullptr if it is long.
  [[nodiscard]] const std::string* in_memory() const { return file_ ? nullptr : &short_; }

 private:
  [[nodiscard]] Status move_to_file();

  const std::string directory_;
  std::string short_;
  UniqueFd file_;
  std::uint64_t size_ = 0;
};

}  // namespace playfs::vfs
