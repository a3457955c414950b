#include "model/chunking.h"

#include "base/text.h"

namespace playfs {

ContentEncoding encoding_for(std::string_view content) {
  bool text = content.find('\0') == std::string_view::npos && is_valid_utf8(content);
  return text ? ContentEncoding::text : ContentEncoding::base64;
}

std::vector<std::string_view> cut_text(std::string_view text, std::size_t json_room) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    std::size_t length = 0;
    for (std::size_t json = 2; length < text.size();) {  // the quotes
      std::size_t next = length + 1;
      while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xC0) == 0x80) ++next;
      json += json_size_of_string(text.substr(length, next - length)) - 2;
      if (next > kMaxChunkText || json > json_room) break;
      length = next;
    }
    pieces.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return pieces;
}

std::string encode_content(std::string_view content, ContentEncoding encoding) {
  return encoding == ContentEncoding::base64 ? to_base64(content) : std::string(content);
}

std::optional<std::string> decode_content(std::string text, ContentEncoding encoding) {
  if (encoding == ContentEncoding::base64) return from_base64(text);
  return text;
}

}  // namespace playfs
