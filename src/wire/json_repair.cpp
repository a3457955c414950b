#include "wire/json_repair.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "base/text.h"

namespace playfs::wire {

namespace {

constexpr std::string_view kReplacement = "\uFFFD";

/// The code unit of a "\uXXXX" escape at the start of `text`.
std::optional<unsigned> unicode_escape(std::string_view text) {
  if (text.size() < 6 || text[0] != '\\' || text[1] != 'u') return std::nullopt;
  unsigned unit = 0;
  auto [end, error] = std::from_chars(text.data() + 2, text.data() + 6, unit, 16);
  if (error != std::errc() || end != text.data() + 6) return std::nullopt;
  return unit;
}

bool is_high_surrogate(unsigned unit) { return unit >= 0xD800 && unit <= 0xDBFF; }
bool is_low_surrogate(unsigned unit) { return unit >= 0xDC00 && unit <= 0xDFFF; }

/// Copies one string escape from the front of `text`.
void copy_escape(std::string_view& text, std::string& out) {
  auto unit = unicode_escape(text);
  std::size_t length = unit ? 6 : std::min<std::size_t>(2, text.size());
  if (unit && is_high_surrogate(*unit)) {
    auto second = unicode_escape(text.substr(6));
    if (second && is_low_surrogate(*second)) length = 12;
    else unit = 0xDC00;  // treat it as a lone surrogate
  }
  if (length == 6 && is_low_surrogate(*unit)) out += kReplacement;
  else out += text.substr(0, length);
  text.remove_prefix(length);
}

/// Whether RapidJSON rejects the number as too large. It also rejects some that are small (0e999).
bool is_too_large(std::string_view number) {
  auto exponent_at = number.find_first_of("eE");
  if (exponent_at != std::string_view::npos && number.substr(exponent_at + 1).find('-') == std::string_view::npos) {
    auto digits = number.substr(exponent_at + 1);
    digits.remove_prefix(std::min(digits.find_first_not_of("+0"), digits.size()));
    if (digits.size() > 3 || (digits.size() == 3 && digits > "300")) return true;
  }
  double value = 0;
  auto outcome = std::from_chars(number.data(), number.data() + number.size(), value);
  if (outcome.ec == std::errc::result_out_of_range) return exponent_at == std::string_view::npos;
  return outcome.ec == std::errc() && std::abs(value) >= 1e307;
}

}  // namespace

std::string with_bad_bytes_replaced(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    std::size_t length = 1;
    while (length < 4 && length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) ++length;
    while (length > 1 && !is_valid_utf8(text.substr(0, length))) --length;
    out += is_valid_utf8(text.substr(0, length)) ? text.substr(0, length) : kReplacement;
    text.remove_prefix(length);
  }
  return out;
}

std::string repair_json(std::string_view original) {
  std::string valid = with_bad_bytes_replaced(original);
  std::string_view text = valid;
  std::string out;
  out.reserve(text.size());
  for (bool in_string = false; !text.empty();) {
    char c = text[0];
    if (in_string && c == '\\') {
      copy_escape(text, out);
    } else if (!in_string && (c == '-' || (c >= '0' && c <= '9'))) {
      auto number = text.substr(0, text.find_first_not_of("+-.0123456789eE"));
      out += is_too_large(number) ? std::string_view("null") : number;
      text.remove_prefix(number.size());
    } else {
      if (c == '"') in_string = !in_string;
      out += c;
      text.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace playfs::wire
