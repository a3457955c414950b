// API keys: read from a file that only its owner can read, and handed out only for the host they were issued for.
//
// $XDG_CONFIG_HOME/playfs/credentials.toml:
//   ["https://example.org"]
//   api_key = "…"
#pragma once

#include <string>

#include "app/places.h"
#include "app/source.h"
#include "base/result.h"

namespace playfs::app {

/// The key for exactly this service; empty where there is none, or where it would travel unprotected (plain http
/// to anything but loopback). Fails with permission_denied where the file or its directory could be read or replaced
/// by others, or is a link: a key that is not private is not used silently.
Result<std::string> api_key_for(const Source& source, const Places& places);

std::string credentials_path(const Places& places);

}  // namespace playfs::app
