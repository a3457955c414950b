// Accounts, sign-in codes and API keys, as the service needs them. Only hashes are stored. Thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "service/store.h"

namespace playfs::service {

/// The result of a verified email address.
struct SignedIn {
  std::string account;
  bool is_new = false;  ///< the account was created by this call
};

class Accounts {
 public:
  virtual ~Accounts() = default;

  /// The account that a key belongs to; nullopt for an unknown key.
  virtual Result<std::optional<std::string>> account_of_key(std::string_view key_hash) = 0;

  /// Stores a code that `client` requested for `email`. It is void after `expires`, or once that client has requested
  /// kLiveCodes newer ones; other clients' requests do not void it. Errors: rate_limited.
  virtual Status put_code(std::string_view email, std::string_view client, std::string_view code_hash, WallTime expires,
                          std::span<const Charge> charges) = 0;

  /// Signs in with a code of `email`, as sign_in does, and voids all codes of that address. nullopt if `code_hash` is
  /// none of them. Errors: rate_limited.
  virtual Result<std::optional<SignedIn>> redeem_code(std::string_view email, std::string_view code_hash,
                                                      std::string_view key_hash, std::span<const Charge> charges) = 0;

  /// Adds a key to the account of `email`, which is created if there is none. An account keeps its newest
  /// kKeysPerAccount keys.
  virtual Result<SignedIn> sign_in(std::string_view email, std::string_view key_hash) = 0;
};

inline constexpr int kKeysPerAccount = 10;
inline constexpr int kLiveCodes = 2;  ///< per address and client; more than one, since a mail may be late

}  // namespace playfs::service
