// API keys: read from a file that only its owner can read, and sent only to the host they were issued for.
//
// $XDG_CONFIG_HOME/playfs/credentials.toml:
//   ["https://example.org"]
//   api_key = "…"
#pragma once

#include <string>

#include "base/result.h"
#include "runtime/places.h"
#include "runtime/source.h"

namespace playfs::runtime {

/// The key for exactly this service; empty if there is none, or if it would travel unprotected (plain http to anything
/// but loopback). Errors: permission_denied if others can read or replace the file or its directory, or if it is a
/// link: a key that is not private is never used silently.
Result<std::string> api_key_for(const Source& source, const Places& places);

std::string credentials_path(const Places& places);

}  // namespace playfs::runtime
