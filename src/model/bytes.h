// File content that need not be in memory: bytes read piecewise from their source, and the text that records hold of
// them.
//
// Content must not change while in use; readers can verify it against a hash. Values are cheap to copy. A Text belongs
// to one thread; several threads may read a Bytes if its source allows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/content_hash.h"
#include "model/manifest.h"

namespace playfs {

/// Random-access storage for content.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Returns exactly the bytes [offset, offset + size). REQUIRES: they are within the source.
  [[nodiscard]] virtual Result<std::string> read(std::uint64_t offset, std::size_t size) const = 0;
  /// A name under which a later process finds the same bytes; empty if there is none.
  [[nodiscard]] virtual std::string lasting_name() const { return {}; }
};

class Bytes {
 public:
  Bytes() = default;
  Bytes(std::string in_memory);  // NOLINT(google-explicit-constructor): a string is bytes
  Bytes(const char* in_memory) : Bytes(std::string(in_memory)) {}  // NOLINT(google-explicit-constructor): likewise
  Bytes(std::shared_ptr<const ByteSource> source, std::uint64_t size) : source_(std::move(source)), size_(size) {}

  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// REQUIRES: offset + size <= size().
  [[nodiscard]] Result<std::string> read(std::uint64_t offset, std::size_t size) const;
  /// For content known to be small.
  [[nodiscard]] Result<std::string> all() const { return read(0, static_cast<std::size_t>(size_)); }
  [[nodiscard]] std::string lasting_name() const { return source_ ? source_->lasting_name() : std::string(); }

 private:
  std::shared_ptr<const ByteSource> source_;
  std::uint64_t size_ = 0;
};

/// Calls `take` for each piece in order until one call fails.
[[nodiscard]] Status each_piece(const Bytes& bytes,
                                const std::function<Status(std::uint64_t offset, std::string_view piece)>& take);

/// What one pass over content yields.
struct Examined {
  ContentHash hash;
  ContentEncoding encoding = ContentEncoding::text;  ///< how records carry it, see encoding_for
};
[[nodiscard]] Result<Examined> examine(const Bytes& bytes);

/// The encoded length of `bytes` bytes.
[[nodiscard]] std::uint64_t text_size(std::uint64_t bytes, ContentEncoding encoding);
/// A part of the encoded text. REQUIRES: offset + size <= text_size(bytes.size(), encoding).
[[nodiscard]] Result<std::string> read_text(const Bytes& bytes, ContentEncoding encoding, std::uint64_t offset,
                                            std::size_t size);

/// Encoded content, seen through a window. After an error reads yield spaces and status() holds the error, so callers
/// check once, at the end.
class Text {
 public:
  Text(Bytes bytes, ContentEncoding encoding)
      : bytes_(std::move(bytes)), encoding_(encoding), size_(text_size(bytes_.size(), encoding)) {}
  explicit Text(std::string_view in_memory) : Text(Bytes(std::string(in_memory)), ContentEncoding::text) {}

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(size_); }
  /// Valid until the next call. The window grows with `length`, which should be about a chunk. REQUIRES: offset +
  /// length <= size().
  [[nodiscard]] std::string_view view(std::size_t offset, std::size_t length) {
    if (offset < begin_ || offset + length > begin_ + window_.size()) move_to(offset, length);
    return std::string_view(window_).substr(offset - begin_, length);
  }
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  void move_to(std::size_t offset, std::size_t length);

  Bytes bytes_;
  ContentEncoding encoding_;
  std::uint64_t size_;
  std::size_t begin_ = 0;  ///< offset of the window in the text
  std::string window_;
  Status status_;
};

/// SHA-256 of the text from `begin` to `end`.
[[nodiscard]] ContentHash hash_of(Text& text, std::size_t begin, std::size_t end);
/// The length of that part inside a JSON string, without quotes.
[[nodiscard]] std::size_t json_inside(Text& text, std::size_t begin, std::size_t end);

}  // namespace playfs
