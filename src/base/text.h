// Text encodings shared by several modules: UTF-8, hex, base64, percent, terminal escapes. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace playfs {

/// Strict UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_valid_utf8(std::string_view text);

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t length = 0;  ///< in bytes; 0: the text does not begin with valid UTF-8
};
/// REQUIRES: not empty.
CodePoint first_code_point(std::string_view text);

/// The number of Unicode code points. REQUIRES: valid UTF-8.
std::size_t count_code_points(std::string_view text);

/// The number of UTF-16 code units, which is JavaScript's `length`. REQUIRES: valid UTF-8.
std::size_t count_utf16_units(std::string_view text);

/// Lowercase hex digits.
std::string to_hex(std::span<const std::byte> bytes);
/// The value of a digit in upper or lower case; -1 for other characters.
int hex_digit(char c);
/// Accepts upper and lower case; nullopt for other characters or an odd count.
std::optional<std::string> from_hex(std::string_view digits);

/// Standard alphabet with padding. REQUIRES, here and below: less than 1 GiB.
std::string to_base64(std::string_view bytes);
/// Strict except that line breaks are skipped; nullopt for other characters or bad padding.
std::optional<std::string> from_base64(std::string_view text);

/// Percent-encodes all but RFC 3986's unreserved characters, so that any id is one path segment or query value.
std::string percent_encode(std::string_view text);
/// nullopt if a `%` is not followed by two hex digits.
std::optional<std::string> percent_decode(std::string_view text);

/// Drops code points that case-folding file systems ignore when they compare names.
std::string without_ignorable(std::string_view text);

/// Whether a terminal may obey the code point instead of showing it: control characters, bidirectional controls, and
/// line separators other than "\n".
bool is_obeyed_by_terminals(std::uint32_t code);
/// Makes untrusted text safe to print: control characters, bidirectional controls, text that is invisible and invalid
/// UTF-8 become visible escapes. Keeps tabs, and line breaks if `keep_newlines`.
std::string escape_for_terminal(std::string_view text, bool keep_newlines = false);
/// The same for a JSON document, using JSON's own escapes: its meaning is unchanged.
std::string escape_json_for_terminal(std::string_view json);

/// Escapes a value for `-o name=value`, where a comma separates options and a backslash quotes the next byte.
std::string escape_for_mount(std::string_view value);

/// Without `blanks` at both ends.
std::string_view trim(std::string_view text, std::string_view blanks = " \t");

/// ASCII only.
std::string to_lower(std::string_view text);
bool equals_ignoring_case(std::string_view a, std::string_view b);

}  // namespace playfs
