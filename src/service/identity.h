// Authorization: maps API keys to identities, and checks the rules about owner and steward. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/http.h"
#include "base/result.h"
#include "model/json.h"
#include "service/accounts.h"
#include "service/collections.h"
#include "service/store.h"

namespace playfs::service {

struct Identity {
  std::string account;  ///< empty for a caller without a key
  bool steward = false;
};

/// The account that owns the steward's records.
inline constexpr std::string_view kStewardAccount = "steward";

/// The stored form of a key or code. SHA-256 is enough: the secrets are random, so no dictionary helps.
std::string hash_of_secret(std::string_view secret);

/// The time does not depend on where the strings differ.
bool equal_in_constant_time(std::string_view a, std::string_view b);

class Gatekeeper {
 public:
  /// `accounts` must outlive it. `steward_key` is the operator's own key; empty: there is no steward.
  Gatekeeper(Accounts& accounts, std::string_view steward_key);

  /// Reads the Authorization header. Errors: unauthorized, for anything but a known bearer key.
  [[nodiscard]] Result<Identity> identify(const HttpRequest& request) const;

 private:
  Accounts& accounts_;
  std::string steward_hash_;
};

/// Whether `who` may change `record`. Errors: permission_denied.
Status may_update(const Identity& who, const Collection& collection, const StoredRecord& record);

/// Whether `who` may set these fields. Errors: permission_denied.
Status may_set(const Identity& who, const Collection& collection, const JsonObject& fields);

}  // namespace playfs::service
