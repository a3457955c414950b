#include "base/text_check.h"

#include <algorithm>
#include <cstddef>

#include "base/text.h"

namespace playfs {

namespace {

/// The number of bytes at the end of `text` that start an incomplete character.
std::size_t begun_at_end(std::string_view text) {
  constexpr std::size_t longest = 4;
  for (std::size_t back = 1; back <= std::min(longest - 1, text.size()); ++back) {
    auto c = static_cast<unsigned char>(text[text.size() - back]);
    if ((c & 0xC0) == 0x80) continue;
    std::size_t length = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

}  // namespace

void TextCheck::update(std::string_view piece) {
  if (!is_text_) return;
  begun_ += piece;
  const std::string_view whole(begun_.data(), begun_.size() - begun_at_end(begun_));
  is_text_ = whole.find('\0') == std::string_view::npos && is_valid_utf8(whole);
  begun_.erase(0, whole.size());
}

}  // namespace playfs
