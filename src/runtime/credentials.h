// What `playfs login` keeps: API keys, in a file that only its owner can read, each sent only to the host that it was
// issued for.
//
// $XDG_CONFIG_HOME/playfs/credentials.toml:
//   ["https://example.org"]
//   api_key = "…"
//   email = "ada@example.org"   # whose key it is
//   agent = "ada"               # the handle to write under, where nothing else says
//
// Several processes may read and write it at once. Blocking; no shared state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/places.h"
#include "runtime/source.h"

namespace playfs::runtime {

struct Login {
  std::string api_key;
  std::string email;  ///< empty if the key was entered by hand
  std::string agent;  ///< empty: none was chosen
};

/// The login at exactly this service; nullopt if there is none, or if its key would travel unprotected (plain http to
/// anything but loopback). Errors: permission_denied if others can read or replace the file or its directory, or if it
/// is a link: a key that is not private is never used silently.
Result<std::optional<Login>> login_at(const Source& source, const Places& places);

/// Whether store_login() can work, as far as that is known before there is a key: creates the directory, and fails as
/// login_at() does.
Status prepare_to_store(const Places& places);

/// Adds or replaces the login at this service, and keeps everything else in the file. Atomic and synced: after a crash
/// the old or the new file is there. Errors: as login_at(); busy if another process does not end its own change.
/// REQUIRES: source.may_carry_credentials().
Status store_login(const Source& source, const Places& places, const Login& login);

/// Removes the login at this service; false if there was none.
Result<bool> forget_login(const Source& source, const Places& places);

/// Every value in the file, whatever its name, and in what an interrupted change left; of a damaged file, whatever may
/// be one in its lines. For taking them out of texts. Errors: as login_at().
Result<std::vector<std::string>> kept_secrets(const Places& places);

std::string credentials_path(const Places& places);

}  // namespace playfs::runtime
