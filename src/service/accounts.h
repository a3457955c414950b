// Accounts and their API keys, as the service needs them. The store keeps hashes of keys, never a key. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

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

  /// Gives the account of `email` another key, creating the account where there is none. An account keeps its
  /// newest kKeysPerAccount keys.
  virtual Result<SignedIn> sign_in(std::string_view email, std::string_view key_hash) = 0;
};

inline constexpr int kKeysPerAccount = 10;

}  // namespace playfs::service
