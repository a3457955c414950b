// Accounts, sign-in codes and API keys, as the service needs them. Only hashes are stored. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "service/store.h"

namespace playfs::service {

/// The result of a verified email address.
struct SignedIn {
  std::string account;
  bool is_new = false;  ///< the account was created by this call
};

/// What is shown of a key, which itself is not stored.
struct ApiKey {
  std::string id;  ///< the first kKeyIdLength digits of its hash
  WallTime created_at;
};

struct Account {
  std::string id;
  std::string email;
  WallTime created_at;
  std::int64_t keys = 0;
};

inline constexpr std::size_t kKeyIdLength = 16;

/// A code that `client` requested for `email`, until when it is good.
struct SignInCode {
  std::string_view email;
  std::string_view client;
  std::string_view hash;
  WallTime expires;
};

/// How much mail an address gets, whoever requests it. Past `mails`, a code that was mailed to it lately is enough.
struct MailLimit {
  Charge mails;
  WallTime good_until;  ///< a code that is good for longer was mailed lately
};

class Accounts {
 public:
  virtual ~Accounts() = default;

  /// The account that a key belongs to; nullopt for an unknown key.
  virtual Result<std::optional<std::string>> account_of_key(std::string_view key_hash) = 0;

  /// Stores a code, which is then to be mailed. It is void after its time, or once its client has requested kLiveCodes
  /// newer ones; other clients' requests do not void it. False if an earlier code is enough: then nothing is stored.
  /// Charged in any case, so that a refusal tells nothing of the address. Errors: rate_limited.
  virtual Result<bool> put_code(const SignInCode& code, const MailLimit& limit, std::span<const Charge> charges) = 0;

  /// Signs in with a code of `email`, as sign_in does, and voids all codes of that address. nullopt if `code_hash` is
  /// none of them. Errors: rate_limited.
  virtual Result<std::optional<SignedIn>> redeem_code(std::string_view email, std::string_view code_hash,
                                                      std::string_view key_hash, std::span<const Charge> charges) = 0;

  /// Adds a key to the account of `email`, which is created if there is none. An account keeps its newest
  /// kKeysPerAccount keys.
  virtual Result<SignedIn> sign_in(std::string_view email, std::string_view key_hash) = 0;

  // For account owners and the operator.

  /// Up to `limit` accounts by email address, behind `after`.
  virtual Result<std::vector<Account>> list_accounts(std::string_view after, std::size_t limit) = 0;
  /// By its id or its email address.
  virtual Result<std::optional<Account>> find_account(std::string_view id_or_email) = 0;
  /// Newest first.
  virtual Result<std::vector<ApiKey>> keys_of(std::string_view account) = 0;
  /// Makes a key of that account invalid; with an empty id, all of them. Returns how many there were.
  virtual Result<std::int64_t> revoke_keys(std::string_view account, std::string_view key_id) = 0;
};

inline constexpr int kKeysPerAccount = 10;
inline constexpr int kLiveCodes = 2;  ///< per address and client; more than one, since a mail may be late

}  // namespace playfs::service
