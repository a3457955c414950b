// Signs in at a site's account service: requests a code by mail, and exchanges it for an API key. Blocking; for
// commands. For one thread. Nothing is repeated: each request costs a mail or an attempt.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "model/json.h"
#include "net/transport.h"
#include "runtime/config.h"
#include "runtime/source.h"

namespace playfs::runtime {

/// The account service of `site`: its own origin, unless the setting account_url names another one. Errors:
/// not_permitted if a key would travel unprotected, to either of them.
Result<Source> account_service_of(const Source& site, const Settings& settings, const Places& places, const Io& io);

class AccountService {
 public:
  struct NewKey {
    std::string api_key;
    bool is_new_user = false;
  };

  /// The clock must outlive it.
  AccountService(std::unique_ptr<net::Transport> transport, const Clock& clock)
      : transport_(std::move(transport)), clock_(clock) {}

  /// Returns when the code expires, if the service says so. Errors: invalid_argument for an address that the service
  /// does not take, rate_limited, not_found if there is no such service, unreachable.
  Result<std::optional<WallTime>> request_code(const std::string& email);

  /// Errors: as above; unauthorized for a code that is wrong or has expired. After any other error the code may have
  /// been used up.
  Result<NewKey> verify_code(const std::string& email, const std::string& code);

 private:
  Result<JsonObject> post(const char* path, JsonObject body);
  std::unique_ptr<net::Transport> transport_;
  const Clock& clock_;
};

}  // namespace playfs::runtime
