// Helpers for origins and header values. Pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"

namespace playfs::net {

/// Whether the host of "scheme://host[:port]" is literally localhost, in 127.0.0.0/8, or ::1.
bool is_loopback(std::string_view origin);

/// Parses any of HTTP's date formats ("Sun, 06 Nov 1994 08:49:37 GMT").
std::optional<WallTime> parse_http_date(std::string_view text);

}  // namespace playfs::net
