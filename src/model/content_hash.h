// The identity of content: SHA-256 over the raw bytes, as computed by ourselves. Plain values; Hasher is for one
// thread at a time.
//
// What a manifest's `h` says is a claim of whoever published it (FileEntry::hash_claim). It can be parsed to a
// ContentHash only where it has the form of SHA-256, and stays a claim until the bytes were compared.
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
  /// 64 hex digits of either case, with or without "sha256:" (or "sha256-") in front.
  static std::optional<ContentHash> parse(std::string_view text);

  /// 64 lowercase hex digits.
  [[nodiscard]] std::string hex() const;
  auto operator<=>(const ContentHash&) const = default;

 private:
  friend class ContentHasher;
  friend struct std::hash<ContentHash>;
  std::array<std::byte, 32> bytes_{};
};

/// SHA-256 over content that arrives in pieces.
class ContentHasher {
 public:
  ContentHasher();
  ContentHasher(ContentHasher&&) noexcept;
  ContentHasher& operator=(ContentHasher&&) noexcept;
  ~ContentHasher();
  void update(std::string_view bytes);
  /// Of what has come so far; more may come.
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
