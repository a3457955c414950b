#include "model/chunking.h"

#include <algorithm>

#include "base/text.h"

namespace playfs {

namespace {

/// Each piece as long as it can be.
std::vector<std::string_view> cut_greedily(std::string_view text, std::size_t most_bytes, std::size_t json_room) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    std::size_t length = 0;
    for (std::size_t json = 2; length < text.size();) {  // the quotes
      std::size_t next = length + 1;
      while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xC0) == 0x80) ++next;
      json += json_size_of_string(text.substr(length, next - length)) - 2;
      if (next > most_bytes || json > json_room) break;
      length = next;
    }
    pieces.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return pieces;
}

}  // namespace

ContentEncoding encoding_for(std::string_view content) {
  bool text = content.find('\0') == std::string_view::npos && is_valid_utf8(content);
  return text ? ContentEncoding::text : ContentEncoding::base64;
}

std::vector<std::string_view> cut_text(std::string_view text, std::size_t json_room) {
  auto pieces = cut_greedily(text, kMaxChunkText, json_room);
  if (pieces.size() < 2) return pieces;
  // A few bytes for characters that do not end where the share does.
  std::size_t share = (text.size() + pieces.size() - 1) / pieces.size() + 3;
  auto even = cut_greedily(text, std::min(share, kMaxChunkText), json_room);
  return even.size() == pieces.size() ? even : pieces;  // else escapes crowd somewhere
}

std::string encode_content(std::string_view content, ContentEncoding encoding) {
  return encoding == ContentEncoding::base64 ? to_base64(content) : std::string(content);
}

std::optional<std::string> decode_content(std::string text, ContentEncoding encoding) {
  if (encoding == ContentEncoding::base64) return from_base64(text);
  return text;
}

}  // namespace playfs
