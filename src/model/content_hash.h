// The identity of content: SHA-256 of the raw bytes, computed locally. Plain values; a ContentHasher belongs to one
// thread at a time.
//
// A manifest's `h` is only its publisher's claim (FileEntry::hash_claim). It parses as a ContentHash only if it looks
// like SHA-256, and remains a claim until checked against the bytes.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace playfs {

class ContentHash {
 public:
  /// SHA-256 of the bytes.
  static ContentHash of(std::string_view bytes);
  /// 64 hex digits of either case, optionally prefixed by "sha256:" or "sha256-".
  static std::optional<ContentHash> parse(std::string_view text);

  /// 64 lowercase hex digits.
  [[nodiscard]] std::string hex() const;
  auto operator<=>(const ContentHash&) const = default;

 private:
  friend class ContentHasher;
  friend struct std::hash<ContentHash>;
  std::array<std::byte, 32> bytes_{};
};

/// Incremental SHA-256.
class ContentHasher {
 public:
  ContentHasher();
  ContentHasher(ContentHasher&&) noexcept;
  ContentHasher& operator=(ContentHasher&&) noexcept;
  ~ContentHasher();
  void update(std::string_view bytes);
  /// The hash of the content so far; more may follow.
  [[nodiscard]] ContentHash so_far();
  /// REQUIRES: called once, last.
  [[nodiscard]] ContentHash finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace playfs

template <>
struct std::hash<playfs::ContentHash> {
  std::size_t operator()(const playfs::ContentHash& hash) const {
    std::size_t value = 0;
    for (std::size_t i = 0; i < sizeof value; ++i) value = value << 8 | std::to_integer<std::size_t>(hash.bytes_[i]);
    return value;
  }
};
