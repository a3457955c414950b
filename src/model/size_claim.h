// What a manifest's `s` may count. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/manifest.h"

namespace playfs {

/// Whether `claim` is the size of `content`: in bytes or, for text, in code points or UTF-16 units, as other clients
/// may count.
bool is_size_of(std::uint64_t claim, std::string_view content, ContentEncoding encoding);

/// The same for content in pieces. A plain value. REQUIRES: for text, each piece is valid UTF-8.
class SizeCount {
 public:
  explicit SizeCount(ContentEncoding encoding) : encoding_(encoding) {}
  void add(std::string_view piece);
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] bool is(std::uint64_t claim) const;

 private:
  ContentEncoding encoding_;
  std::uint64_t bytes_ = 0, code_points_ = 0, utf16_units_ = 0;
};

}  // namespace playfs
