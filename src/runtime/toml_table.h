// Replaces one table of a TOML document and keeps everything else: other tables, unknown values, and comments wherever
// the layout allows it. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <toml++/toml.h>

#include "base/result.h"

namespace playfs::runtime {

/// Errors: invalid_argument, with the line number but not the text, which may be a secret. `name`: of the document, for
/// messages.
Result<toml::table> parse_secret_toml(std::string_view text, const std::string& name);

/// `text` with `table` in place of the top-level value `key`, or without that value. REQUIRES: parse_secret_toml
/// accepts `text`.
std::string with_toml_table(std::string_view text, std::string_view key, const std::optional<toml::table>& table);

}  // namespace playfs::runtime
