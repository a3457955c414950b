// The text that a file shows. Cheap to copy, thread-safe.
//
// A short text is in memory. A long one, such as that of a record of megabytes, is an object in the cache on disk, and
// this holds its name. The object may be evicted at any time; the text is then made again (Site::read_text).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "model/content_hash.h"

namespace playfs::content {

class Text {
 public:
  /// Longer ones are kept on disk.
  static constexpr std::size_t kMostInMemory = 64 << 10;

  explicit Text(std::string bytes)
      : bytes_(std::make_shared<const std::string>(std::move(bytes))), size_(bytes_->size()) {}
  Text(const ContentHash& object, std::uint64_t size) : object_(object), size_(size) {}

  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// nullptr: it is an object.
  [[nodiscard]] const std::string* bytes() const { return bytes_.get(); }
  [[nodiscard]] const ContentHash& object() const { return object_; }

  bool operator==(const Text& other) const {
    if (bytes_ && other.bytes_) return *bytes_ == *other.bytes_;
    return !bytes_ && !other.bytes_ && object_ == other.object_;
  }

 private:
  std::shared_ptr<const std::string> bytes_;
  ContentHash object_;
  std::uint64_t size_ = 0;
};

}  // namespace playfs::content
