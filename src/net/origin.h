// Facts about an origin and about header values. Pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"

namespace playfs::net {

/// Whether the host of "scheme://host[:port]" is this machine: localhost, 127.0.0.0/8 or ::1, written as such.
bool is_loopback(std::string_view origin);

/// A date in any of the forms of HTTP ("Sun, 06 Nov 1994 08:49:37 GMT").
std::optional<WallTime> parse_http_date(std::string_view text);

}  // namespace playfs::net
