// Accounts, sign-in codes and API keys, as the service needs them. What is stored are hashes. Thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "service/store.h"

namespace playfs::service {

/// What follows from a verified email address.
struct SignedIn {
  std::string account;
  bool is_new = false;  ///< the account was created just now
};

class Accounts {
 public:
  virtual ~Accounts() = default;

  /// The account that a key belongs to; nullopt for a key that nobody has.
  virtual Result<std::optional<std::string>> account_of_key(std::string_view key_hash) = 0;

  /// A code of `email` that `client` asked for, void after `expires`, or once that client has asked for kLiveCodes
  /// more: what others ask for voids none of them. Errors: rate_limited.
  virtual Status put_code(std::string_view email, std::string_view client, std::string_view code_hash, WallTime expires,
                          std::span<const Charge> charges) = 0;

  /// Signs in with a code of `email`, and voids all it has: as sign_in. nullopt where that is none of its codes.
  /// Errors: rate_limited.
  virtual Result<std::optional<SignedIn>> redeem_code(std::string_view email, std::string_view code_hash,
                                                      std::string_view key_hash, std::span<const Charge> charges) = 0;

  /// Gives the account of `email` another key, creating the account where there is none. An account keeps its
  /// newest kKeysPerAccount keys.
  virtual Result<SignedIn> sign_in(std::string_view email, std::string_view key_hash) = 0;
};

inline constexpr int kKeysPerAccount = 10;
inline constexpr int kLiveCodes = 2;  ///< of one address, asked for by one client: a mail may be late

}  // namespace playfs::service
