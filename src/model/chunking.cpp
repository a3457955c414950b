#include "model/chunking.h"

#include <algorithm>

#include "base/text.h"
#include "model/json.h"

namespace playfs {

namespace {

constexpr std::size_t kLongestCharacter = 4;

/// The length of the longest valid first piece of a text that begins with `text`. REQUIRES: `text` is the whole text,
/// or exceeds `most_bytes` by a character.
std::size_t first_piece(std::string_view text, std::size_t most_bytes, std::size_t json_room) {
  auto begins_character = [&](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80; };
  std::size_t most = std::min(text.size(), most_bytes);
  // Fast path: escapes rarely make fewer bytes fit.
  if (json_size_of_string(text.substr(0, most)) <= json_room) {
    while (most > 0 && most < text.size() && !begins_character(most)) --most;
    return most;
  }
  std::size_t length = 0;
  for (std::size_t json = 2; length < text.size();) {  // the quotes
    std::size_t next = length + 1;
    while (next < text.size() && !begins_character(next)) ++next;
    json += json_size_of_string(text.substr(length, next - length)) - 2;
    if (next > most_bytes || json > json_room) break;
    length = next;
  }
  return length;
}

/// Makes each piece as long as possible.
std::vector<std::size_t> cut_greedily(Text& text, std::size_t begin, std::size_t end, std::size_t most_bytes,
                                      std::size_t json_room) {
  std::vector<std::size_t> lengths;
  while (begin < end) {
    auto beginning = text.view(begin, std::min(end - begin, most_bytes + kLongestCharacter));
    lengths.push_back(std::max<std::size_t>(first_piece(beginning, most_bytes, json_room), 1));
    begin += lengths.back();
  }
  return lengths;
}

}  // namespace

ContentEncoding encoding_for(std::string_view content) {
  bool text = content.find('\0') == std::string_view::npos && is_valid_utf8(content);
  return text ? ContentEncoding::text : ContentEncoding::base64;
}

std::vector<std::size_t> cut_text(Text& text, std::size_t begin, std::size_t end, std::size_t json_room) {
  auto pieces = cut_greedily(text, begin, end, kMaxChunkText, json_room);
  if (pieces.size() < 2) return pieces;
  // A few bytes of slack, since characters may straddle the even share.
  std::size_t share = (end - begin + pieces.size() - 1) / pieces.size() + 3;
  auto even = cut_greedily(text, begin, end, std::min(share, kMaxChunkText), json_room);
  return even.size() == pieces.size() ? even : pieces;  // otherwise escapes are concentrated somewhere
}

std::vector<std::string_view> cut_text(std::string_view text, std::size_t json_room) {
  Text windows(text);
  std::vector<std::string_view> pieces;
  for (std::size_t length : cut_text(windows, 0, text.size(), json_room)) {
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
