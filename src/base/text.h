// Encodings of text and bytes that several rooms need: UTF-8, hex, base64, percent, escapes for a terminal.
// Pure functions, thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace playfs {

/// Strict UTF-8: no overlong forms, no surrogates, nothing past U+10FFFF.
bool is_valid_utf8(std::string_view text);

/// The number of Unicode code points. REQUIRES: valid UTF-8.
std::size_t count_code_points(std::string_view text);

/// The number of UTF-16 units, which is what `length` counts in JavaScript. REQUIRES: valid UTF-8.
std::size_t count_utf16_units(std::string_view text);

/// Lowercase hex digits.
std::string to_hex(std::span<const std::byte> bytes);
/// Reads upper or lower case; nullopt where anything else or an odd count stands.
std::optional<std::string> from_hex(std::string_view digits);

/// Standard alphabet with padding.
std::string to_base64(std::string_view bytes);
/// Strict but for line breaks, which are skipped; nullopt for anything else outside the alphabet or bad padding.
std::optional<std::string> from_base64(std::string_view text);

/// Percent-encodes everything but RFC 3986's unreserved characters, so that any id is one path segment or query value.
std::string percent_encode(std::string_view text);
/// nullopt where a `%` is not followed by two hex digits.
std::optional<std::string> percent_decode(std::string_view text);

/// Text of a stranger made safe to print: control characters, bidirectional overrides and invalid UTF-8 become
/// visible escapes. Tab is kept, and line breaks where `keep_newlines` says so.
std::string escape_for_terminal(std::string_view text, bool keep_newlines = false);
/// The same of a JSON document, with JSON's own escapes: it says what it said before.
std::string escape_json_for_terminal(std::string_view json);

/// A value for `-o name=value`: in a list of options a comma ends it, and a backslash takes the next byte as it is.
std::string escape_for_mount(std::string_view value);

/// ASCII only.
std::string to_lower(std::string_view text);
bool equals_ignoring_case(std::string_view a, std::string_view b);

}  // namespace playfs
