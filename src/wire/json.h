// Parses and prints JSON; the only user of RapidJSON.
//
// Input is untrusted, so parsing is iterative and bounded; exceeding a limit is an error that names it. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/json.h"

namespace playfs::wire {

struct JsonLimits {
  std::size_t document_size = 4 << 20;  ///< bytes of text
  std::size_t depth = 64;               ///< nested arrays and objects
  std::size_t values = 1'000'000;       ///< in the whole document; a full page of the densest records has 800,000
  std::size_t string_size = 2 << 20;    ///< bytes of one string, after unescaping
};

/// Parses one JSON document, surrounded only by white space. Strings must be valid UTF-8 (escaped lone surrogates are
/// refused too). Fails with `protocol`, naming the offset.
Result<Json> parse_json(std::string_view text, const JsonLimits& limits = {});

/// The same for a service's response, where one bad record must not make the rest unreadable. Escaped lone surrogates
/// and bad UTF-8 become U+FFFD; numbers beyond a double's range, and records of a page nested deeper than
/// `limits.depth`, become null.
Result<Json> parse_answer(std::string_view text, const JsonLimits& limits = {});

/// Compact; strings are escaped as json_size_of_string counts. Each byte of invalid UTF-8 becomes U+FFFD.
std::string to_text(const Json& value);
/// Indented by two spaces, safe to read on a terminal (escape_json_for_terminal); ends with a newline.
std::string to_pretty_text(const Json& value);

}  // namespace playfs::wire
