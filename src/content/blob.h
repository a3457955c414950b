// The bytes of one published file, complete and verified.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "cache/object_store.h"

namespace playfs::content {

/// Cheap to copy, thread-safe. Keep it for a read, not for the life of a file handle: it may hold a descriptor.
class Blob {
 public:
  /// `owner` keeps the text alive: content that stands inline in a manifest.
  Blob(std::shared_ptr<const void> owner, std::string_view text) : owner_(std::move(owner)), text_(text) {}
  explicit Blob(cache::ObjectPtr object) : object_(std::move(object)) {}

  [[nodiscard]] std::uint64_t size() const { return object_ ? object_->size() : text_.size(); }

  /// Fewer bytes only at the end. `corrupt` where the disk gave back other bytes than were stored: that copy is out
  /// of the way then, and asking the Site for the blob again fetches it anew.
  [[nodiscard]] Result<std::string> read(std::uint64_t offset, std::size_t size) const {
    if (object_) return object_->read(offset, size);
    return offset < text_.size() ? std::string(text_.substr(offset, size)) : std::string();
  }

  /// Makes all of it the content of the empty file `fd`, without copying where the disk can share; `corrupt` as above.
  [[nodiscard]] Status copy_to(int fd) const { return object_ ? object_->copy_to(fd) : write_all_at(fd, text_, 0); }

 private:
  std::shared_ptr<const void> owner_;
  std::string_view text_;
  cache::ObjectPtr object_;
};

}  // namespace playfs::content
