// JSON text to values and back: the only door to RapidJSON.
//
// Text comes from strangers, so parsing is iterative and bounded; a document past a limit is an error that says
// which. Pure functions, thread-safe.
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
  std::size_t values = 1'000'000;     ///< values in the whole document; a full page of the tightest records has 800,000
  std::size_t string_size = 2 << 20;  ///< bytes of one string, after unescaping
};

/// One JSON document, with nothing but white space around it. Strings must be valid UTF-8 (escaped lone surrogates
/// are refused with it). Fails with `protocol`, saying the offset.
Result<Json> parse_json(std::string_view text, const JsonLimits& limits = {});

/// The same for the answer of a service, which carries what strangers wrote: one record must not make the rest
/// unreadable. Escaped lone surrogates and bad UTF-8 become U+FFFD, numbers past a double's range become null, and a
/// record in the list of a page that is nested past `limits.depth` becomes null.
Result<Json> parse_answer(std::string_view text, const JsonLimits& limits = {});

/// Compact; strings escaped as json_size_of_string counts them. A string that is not valid UTF-8 gets U+FFFD in
/// place of each bad byte.
std::string to_text(const Json& value);
/// Indented by two spaces, for files that people read, on terminals too (escape_json_for_terminal); ends with a
/// newline.
std::string to_pretty_text(const Json& value);

}  // namespace playfs::wire
