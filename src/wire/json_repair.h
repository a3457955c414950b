// Repairs what strict JSON readers reject but many services pass through in records. Pure; internal to this module.
#pragma once

#include <string>
#include <string_view>

namespace playfs::wire {

/// The text with each byte of invalid UTF-8 replaced by U+FFFD.
std::string with_bad_bytes_replaced(std::string_view text);

/// Replaces bad bytes and escaped lone surrogates by U+FFFD, and numbers that RapidJSON finds too large for a double by
/// null (as JavaScript prints them). Everything else, errors included, is unchanged.
std::string repair_json(std::string_view text);

}  // namespace playfs::wire
