#include "base/text.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace playfs {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

namespace {

/// Code points, first and last.
using CodeRange = std::pair<std::uint32_t, std::uint32_t>;

bool is_in(std::span<const CodeRange> ranges, std::uint32_t code) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const CodeRange& range) { return range.first <= code && code <= range.second; });
}

/// Unicode's Default_Ignorable_Code_Point, which ext4 and f2fs ignore in directories that fold case. HFS+ ignores some
/// of them.
constexpr std::array<CodeRange, 17> kIgnorable = {{{0xAD, 0xAD},
                                                   {0x34F, 0x34F},
                                                   {0x61C, 0x61C},
                                                   {0x115F, 0x1160},
                                                   {0x17B4, 0x17B5},
                                                   {0x180B, 0x180F},
                                                   {0x200B, 0x200F},
                                                   {0x202A, 0x202E},
                                                   {0x2060, 0x206F},
                                                   {0x3164, 0x3164},
                                                   {0xFE00, 0xFE0F},
                                                   {0xFEFF, 0xFEFF},
                                                   {0xFFA0, 0xFFA0},
                                                   {0xFFF0, 0xFFF8},
                                                   {0x1BCA0, 0x1BCA3},
                                                   {0x1D173, 0x1D17A},
                                                   {0xE0000, 0xE0FFF}}};

/// Controls of bidirectional text: they reorder what is around them.
constexpr std::array<CodeRange, 4> kBidirectional = {
    {{0x61C, 0x61C}, {0x200E, 0x200F}, {0x202A, 0x202E}, {0x2066, 0x2069}}};

/// Invisible, but read by programs. Without those that belong to words and emoji.
constexpr std::array<CodeRange, 7> kInvisible = {{{0xAD, 0xAD},
                                                  {0x200B, 0x200B},
                                                  {0x2060, 0x2064},
                                                  {0x206A, 0x206F},
                                                  {0xFEFF, 0xFEFF},
                                                  {0xFFF9, 0xFFFB},
                                                  {0xE0000, 0xE0FFF}}};

/// With a surrogate pair if needed.
std::string json_escape(std::uint32_t code) {
  if (code < 0x10000) return fmt::format("\\u{:04x}", code);
  const std::uint32_t above = code - 0x10000;
  return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (above >> 10), 0xDC00 + (above & 0x3FF));
}

}  // namespace

CodePoint first_code_point(std::string_view text) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  auto continues = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xC0) == 0x80; };
  unsigned first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first >= 0xC2 && first <= 0xDF && continues(1)) return {(first & 0x1Fu) << 6 | (byte(1) & 0x3Fu), 2};
  if (first >= 0xE0 && first <= 0xEF && continues(1) && continues(2)) {
    std::uint32_t value = (first & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
    if (value >= 0x800 && (value < 0xD800 || value > 0xDFFF)) return {value, 3};
  }
  if (first >= 0xF0 && first <= 0xF4 && continues(1) && continues(2) && continues(3)) {
    std::uint32_t value = (first & 0x07u) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 | (byte(3) & 0x3Fu);
    if (value >= 0x10000 && value <= 0x10FFFF) return {value, 4};
  }
  return {};
}

// utfcpp was measured: 68 ms for 32 MiB of ASCII, which takes 16 ms here, and about the same for other text.
bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    // Nearly all text is ASCII: check eight bytes at a time.
    std::uint64_t eight = 0;
    if (text.size() >= sizeof(eight)) {
      std::memcpy(&eight, text.data(), sizeof(eight));
      if ((eight & 0x8080808080808080) == 0) {
        text.remove_prefix(sizeof(eight));
        continue;
      }
    }
    const auto decoded = static_cast<unsigned char>(text[0]) < 0x80 ? CodePoint{0, 1} : first_code_point(text);
    if (decoded.length == 0) return false;
    text.remove_prefix(decoded.length);
  }
  return true;
}

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

std::size_t count_utf16_units(std::string_view text) {
  std::size_t count = count_code_points(text);
  for (char c : text) count += static_cast<unsigned char>(c) >= 0xF0;
  return count;
}

std::string to_hex(std::span<const std::byte> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (std::byte b : bytes) {
    out += digits[std::to_integer<unsigned>(b) >> 4];
    out += digits[std::to_integer<unsigned>(b) & 15];
  }
  return out;
}

std::optional<std::string> from_hex(std::string_view digits) {
  if (digits.size() % 2 != 0) return std::nullopt;
  std::string out;
  out.reserve(digits.size() / 2);
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    int high = hex_digit(digits[i]), low = hex_digit(digits[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high << 4 | low);
  }
  return out;
}

std::string to_base64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');  // OpenSSL adds a NUL
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(size));
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string digits;
  digits.reserve(text.size());
  std::copy_if(text.begin(), text.end(), std::back_inserter(digits), [](char c) { return c != '\n' && c != '\r'; });
  const std::size_t padding = digits.ends_with("==") ? 2 : digits.ends_with('=') ? 1 : 0;
  // OpenSSL takes padding anywhere for zeros, and ignores blanks and hyphens at both ends.
  if (digits.size() % 4 != 0 || digits.find('=') < digits.size() - padding) return std::nullopt;
  std::string out(digits.size() / 4 * 3, '\0');
  const int size =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(digits.data()), static_cast<int>(digits.size()));
  if (size < 0 || static_cast<std::size_t>(size) != out.size()) return std::nullopt;
  out.resize(out.size() - padding);
  return out;
}

std::string percent_encode(std::string_view text) {
  std::string out;
  for (char c : text) {
    bool unreserved = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                      c == '.' || c == '_' || c == '~';
    if (unreserved) out += c;
    else out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high << 4 | low);
    i += 2;
  }
  return out;
}

std::string without_ignorable(std::string_view text) {
  auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::all_of(text.begin(), text.end(), is_ascii)) return std::string(text);
  std::string out;
  while (!text.empty()) {
    auto decoded = first_code_point(text);
    const std::size_t length = std::max<std::size_t>(decoded.length, 1);
    if (decoded.length == 0 || !is_in(kIgnorable, decoded.value)) out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return out;
}

bool is_obeyed_by_terminals(std::uint32_t code) {
  return (code < 0x20 && code != '\t' && code != '\n') || (code >= 0x7F && code < 0xA0) ||
         is_in(kBidirectional, code) || code == 0x2028 || code == 0x2029;
}

std::string escape_for_terminal(std::string_view text, bool keep_newlines) {
  std::string out;
  while (!text.empty()) {
    auto decoded = first_code_point(text);
    std::size_t length = std::max<std::size_t>(decoded.length, 1);
    auto c = decoded.value;
    if (decoded.length == 0) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    else if (c == '\t' || (c == '\n' && keep_newlines)) out += static_cast<char>(c);
    else if (c < 0x20 || c == 0x7F) out += fmt::format("\\x{:02x}", c);
    else if (c >= 0x80 && (is_obeyed_by_terminals(c) || is_in(kInvisible, c))) out += json_escape(c);
    else out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return out;
}

std::string escape_json_for_terminal(std::string_view json) {
  // Everything to escape is inside strings, and the terminal escapes are valid JSON except this one.
  std::string without_delete;
  for (char c : json) {
    if (c == 0x7f) without_delete += "\\u007f";
    else without_delete += c;
  }
  return escape_for_terminal(without_delete, true);
}

std::string escape_for_mount(std::string_view value) {
  std::string escaped;
  for (char c : value) {
    if (c == ',' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string_view trim(std::string_view text, std::string_view blanks) {
  auto begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && to_lower(a) == to_lower(b);
}

}  // namespace playfs
