// What strangers' records may contain that is no valid JSON for a strict reader, though many services pass it on.
// Pure; for the room's own use.
#pragma once

#include <string>
#include <string_view>

namespace playfs::wire {

/// The text with U+FFFD in place of each byte that is not valid UTF-8.
std::string with_bad_bytes_replaced(std::string_view text);

/// JSON text with U+FFFD in place of bad bytes and escaped lone surrogates, and null in place of numbers that RapidJSON
/// finds too large for a double (null is what JavaScript makes of them). Everything else, errors included, stays.
std::string repair_json(std::string_view text);

}  // namespace playfs::wire
