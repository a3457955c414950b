// Text of strangers in mails, and as the value of a header. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace playfs::mail {

/// Valid UTF-8 without NUL: each bad byte and each NUL becomes U+FFFD. Programs in C would not show what follows a NUL.
std::string readable(std::string_view text);

/// Replaces what a terminal would obey by visible escapes, which not all mail readers do. Keeps what occurs in patches:
/// tabs, form feeds, and carriage returns at the ends of lines.
std::string shown(std::string_view text);

/// `readable` in one line: control characters and line separators become spaces, and none is left at the ends.
std::string one_line(std::string_view text);

/// One line as the value of an unstructured header or as a display name: ASCII words as they are, anything else as RFC
/// 2047's encoded words, separated by single spaces. What only looks like an encoded word is encoded too, so that
/// readers show it literally. No word is longer than 75 characters.
std::string header_words(std::string_view line);

}  // namespace playfs::mail
