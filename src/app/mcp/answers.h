// What the tools of `playfs mcp` answer: data first, and then, in a text of its own so that no data can pass for it,
// what to do next. And how they read their arguments. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "mcp/feature_set.h"
#include "model/json.h"

namespace playfs::app {

/// `next`: words, such as "publish with a message".
mcp::Answer answered(std::vector<std::string> texts, const std::string& next);
/// `next`: empty if the error's own hint has to do.
mcp::Answer failed(const Error& error, const std::string& next = {});

// Arguments: absent, or of the given type, or an error that says so.
Result<std::optional<std::string>> text_argument(const JsonObject& arguments, std::string_view name);
Result<bool> flag_argument(const JsonObject& arguments, std::string_view name);
/// A whole number from 0 to a million.
Result<std::optional<std::uint32_t>> number_argument(const JsonObject& arguments, std::string_view name);
Result<std::vector<std::string>> texts_argument(const JsonObject& arguments, std::string_view name);
/// Refuses arguments that the tool does not have: a misspelt one must not count as absent.
Status check_arguments(const JsonObject& arguments, const std::vector<std::string_view>& known);

/// "1 file", "2 files".
std::string count_words(std::uint64_t count, const std::string& what);

}  // namespace playfs::app
