// The verified content of one published file.
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
  /// For content inline in a manifest; `owner` keeps the text alive.
  Blob(std::shared_ptr<const void> owner, std::string_view text) : owner_(std::move(owner)), text_(text) {}
  explicit Blob(cache::ObjectPtr object) : object_(std::move(object)) {}

  [[nodiscard]] std::uint64_t size() const { return object_ ? object_->size() : text_.size(); }

  /// Returns fewer bytes only at the end. `corrupt` if the disk returned other bytes than were stored; that copy is
  /// then set aside, and requesting the blob from the Site again refetches it.
  [[nodiscard]] Result<std::string> read(std::uint64_t offset, std::size_t size) const {
    if (object_) return object_->read(offset, size);
    return offset < text_.size() ? std::string(text_.substr(offset, size)) : std::string();
  }

  /// Copies everything to the empty file `fd`, sharing disk space if possible; `corrupt` as above.
  [[nodiscard]] Status copy_to(int fd) const { return object_ ? object_->copy_to(fd) : write_all_at(fd, text_, 0); }

 private:
  std::shared_ptr<const void> owner_;
  std::string_view text_;
  cache::ObjectPtr object_;
};

}  // namespace playfs::content
