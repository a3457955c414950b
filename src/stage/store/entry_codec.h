// Byte encodings for columns of the stage's database: manifest entries with their unknown fields, lists, numbers. Not
// an exchange format: the service's JSON belongs to wire. Pure functions.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stage/store/values.h"

namespace playfs::stage {

std::string encode_entry(const FileEntry& entry);
/// nullopt if the bytes are not an encoded entry.
std::optional<FileEntry> decode_entry(std::string_view bytes);

/// nullopt if the text is not a number and nothing else.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Lists as printable text.
std::string encode_tracked(const Tracked& paths);
std::optional<Tracked> decode_tracked(std::string_view text);
std::string encode_conflicted(const std::vector<Conflicted>& list);
std::optional<std::vector<Conflicted>> decode_conflicted(std::string_view text);

}  // namespace playfs::stage
