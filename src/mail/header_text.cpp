#include "mail/header_text.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace playfs::mail {

namespace {

// RFC 2047 allows words of 75 characters in lines of 76. The first word shares its line with the header's name.
constexpr std::size_t kFirstWord = 55;
constexpr std::size_t kLaterWord = 75;
constexpr std::size_t kLongestPlainWord = 60;

bool is_control(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029;
}

/// Whether readers show the text unchanged: only words of ASCII with single spaces between them.
bool is_plain_line(std::string_view line) {
  std::size_t word = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c < 0x20 || c > 0x7E || ++word > kLongestPlainWord) return false;
    if (c == ' ') {
      if (word == 1) return false;
      word = 0;
    }
    if (c == '=' && line.substr(i + 1).starts_with('?')) return false;
  }
  return line.empty() || word > 0;
}

/// A code point in RFC 2047's "Q" encoding, as it may stand in a display name.
std::string q_encoded(std::string_view character) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  const char first = character[0];
  if (first == ' ') return "_";
  if (character.size() == 1 && std::isalnum(static_cast<unsigned char>(first)) != 0) return std::string(character);
  std::string out;
  for (char c : character) {
    const auto byte = static_cast<unsigned char>(c);
    out += {'=', digits[byte >> 4], digits[byte & 15]};
  }
  return out;
}

}  // namespace

std::string readable(std::string_view text) {
  if (is_valid_utf8(text) && text.find('\0') == text.npos) return std::string(text);
  std::string out;
  out.reserve(text.size() + 16);
  while (!text.empty()) {
    const CodePoint code = first_code_point(text);
    if (code.value == 0) out += "\uFFFD";
    else out += text.substr(0, code.length);
    text.remove_prefix(std::max<std::size_t>(code.length, 1));
  }
  return out;
}

std::string shown(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint code = first_code_point(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(code.length, 1));
    const bool is_kept = code.value == '\f' || text.starts_with("\r\n") || !is_obeyed_by_terminals(code.value);
    if (code.length > 0 && is_kept) out += character;
    else out += escape_for_terminal(character);
    text.remove_prefix(character.size());
  }
  return out;
}

std::string one_line(std::string_view text) {
  const std::string clean = readable(text);
  std::string out;
  out.reserve(clean.size());
  for (std::string_view rest = clean; !rest.empty();) {
    const CodePoint code = first_code_point(rest);
    if (is_control(code.value)) out += ' ';
    else out += rest.substr(0, code.length);
    rest.remove_prefix(code.length);
  }
  return std::string(trim(out, " "));
}

// Not in base64: GMime, and so notmuch and mu, loses what follows a padded word.
std::string header_words(std::string_view line) {
  if (is_plain_line(line)) return std::string(line);
  constexpr std::string_view begin = "=?utf-8?Q?", end = "?=";
  std::string out, word(begin);
  while (!line.empty()) {
    const std::string_view character = line.substr(0, first_code_point(line).length);
    const std::string encoded = q_encoded(character);
    if (word.size() + encoded.size() + end.size() > (out.empty() ? kFirstWord : kLaterWord)) {
      out.append(word).append(end) += ' ';
      word = begin;
    }
    word += encoded;
    line.remove_prefix(character.size());
  }
  return out.append(word).append(end);
}

}  // namespace playfs::mail
