#include "service/identity.h"
#include "service/sqlite_connections.h"
#include "service/sqlite_limits.h"
#include "service/sqlite_store.h"
#include "service/stored_time.h"

namespace playfs::service {

namespace {
constexpr std::string_view kAccountOfKey = "SELECT account FROM api_keys WHERE hash = ?1";
constexpr std::string_view kAccountOfEmail = "SELECT id FROM accounts WHERE email = ?1";
constexpr std::string_view kAddAccount = "INSERT INTO accounts (id, email, created_at) VALUES (?1, ?2, ?3)";
constexpr std::string_view kAddKey = "INSERT INTO api_keys (hash, account, created_at) VALUES (?1, ?2, ?3)";
constexpr std::string_view kDropOldKeys =
    "DELETE FROM api_keys WHERE account = ?1 AND rowid NOT IN"
    " (SELECT rowid FROM api_keys WHERE account = ?1 ORDER BY created_at DESC, rowid DESC LIMIT ?2)";

#define PLAYFS_ACCOUNT_COLUMNS \
  "SELECT id, email, created_at, (SELECT count(*) FROM api_keys WHERE account = accounts.id) FROM accounts"
constexpr std::string_view kListAccounts = PLAYFS_ACCOUNT_COLUMNS " WHERE email > ?1 ORDER BY email LIMIT ?2";
// No id contains an @, and every address does.
constexpr std::string_view kFindAccount = PLAYFS_ACCOUNT_COLUMNS " WHERE id = ?1 OR email = ?1";
constexpr std::string_view kKeysOf =
    "SELECT hash, created_at FROM api_keys WHERE account = ?1 ORDER BY created_at DESC, rowid DESC";
constexpr std::string_view kRevokeKeys =
    "DELETE FROM api_keys WHERE account = ?1 AND (?2 = '' OR substr(CAST(hash AS TEXT), 1, ?3) = ?2) RETURNING 1";

constexpr std::string_view kForgetCodes = "DELETE FROM sign_in_codes WHERE expires <= ?1";
constexpr std::string_view kPutCode =
    "INSERT INTO sign_in_codes (email, client, hash, expires) VALUES (?1, ?2, ?3, ?4)";
constexpr std::string_view kDropOldCodes =
    "DELETE FROM sign_in_codes WHERE email = ?1 AND client = ?2 AND rowid NOT IN"
    " (SELECT rowid FROM sign_in_codes WHERE email = ?1 AND client = ?2 ORDER BY rowid DESC LIMIT ?3)";
constexpr std::string_view kCodesOfEmail = "SELECT hash FROM sign_in_codes WHERE email = ?1 AND expires > ?2";
// A code that expires later than a new one would was made before the clock was set back.
constexpr std::string_view kLastMailed =
    "SELECT expires FROM sign_in_codes WHERE email = ?1 AND expires > ?2 AND expires <= ?3 ORDER BY expires DESC LIMIT "
    "1";
constexpr std::string_view kUseUp = "DELETE FROM sign_in_codes WHERE email = ?1";

Result<SignedIn> add_key(Connection& connection, std::string_view email, std::string_view key_hash, WallTime now,
                         Random& random) {
  SignedIn result;
  {
    PLAYFS_TRY(auto query, connection.use(kAccountOfEmail));
    PLAYFS_TRY(bool known, query->bind(1, email).step());
    if (known) result.account = query->text(0);
    else result = {"acct_" + random.hex(20), true};
  }
  if (result.is_new) {
    PLAYFS_TRY(auto add, connection.use(kAddAccount));
    PLAYFS_CHECK(add->bind(1, result.account).bind(2, email).bind(3, to_column(now)).run());
  }
  PLAYFS_TRY(auto add, connection.use(kAddKey));
  PLAYFS_CHECK(add->bind_blob(1, key_hash).bind(2, result.account).bind(3, to_column(now)).run());
  PLAYFS_TRY(auto drop, connection.use(kDropOldKeys));
  PLAYFS_CHECK(drop->bind(1, result.account).bind(2, static_cast<std::int64_t>(kKeysPerAccount)).run());
  return result;
}

Account account_of_row(const Statement& row) {
  return {std::string(row.text(0)), std::string(row.text(1)), from_column(row.integer(2)), row.integer(3)};
}

/// Counts a mail. False if there have been enough, and a code that was mailed lately is still good.
Result<bool> may_mail(Connection& connection, const SignInCode& code, const MailLimit& limit, WallTime now) {
  auto counted = charge_write(connection, limit.mails, now);
  if (counted) return true;
  if (counted.error().code != ErrorCode::rate_limited) return fail(std::move(counted).error());
  PLAYFS_TRY(auto query, connection.use(kLastMailed));
  query->bind(1, code.email).bind(2, to_column(limit.good_until)).bind(3, to_column(code.expires));
  PLAYFS_TRY(bool is_enough, query->step());
  return !is_enough;
}

Result<bool> is_code_of(Connection& connection, std::string_view email, std::string_view code_hash, WallTime now) {
  PLAYFS_TRY(auto query, connection.use(kCodesOfEmail));
  query->bind(1, email).bind(2, to_column(now));
  bool is_one = false;
  for (;;) {
    PLAYFS_TRY(bool known, query->step());
    if (!known) return is_one;
    if (equal_in_constant_time(query->text(0), code_hash)) is_one = true;
  }
}
}  // namespace

Result<std::optional<std::string>> SqliteStore::account_of_key(std::string_view key_hash) {
  PLAYFS_TRY(auto connection, connections_->read());
  PLAYFS_TRY(auto query, connection->use(kAccountOfKey));
  PLAYFS_TRY(bool known, query->bind_blob(1, key_hash).step());
  if (!known) return std::nullopt;
  return std::string(query->text(0));
}

Result<bool> SqliteStore::put_code(const SignInCode& code, const MailLimit& limit, std::span<const Charge> charges) {
  bool is_put = false;
  PLAYFS_CHECK(connections_->write([&](Connection& connection) -> Status {
    WallTime now = clock_.wall();
    for (const Charge& charge : charges) PLAYFS_CHECK(charge_write(connection, charge, now));
    PLAYFS_TRY(is_put, may_mail(connection, code, limit, now));
    if (!is_put) return {};
    PLAYFS_TRY(auto forget, connection.use(kForgetCodes));
    PLAYFS_CHECK(forget->bind(1, to_column(now)).run());
    PLAYFS_TRY(auto put, connection.use(kPutCode));
    put->bind(1, code.email).bind(2, code.client).bind(3, code.hash).bind(4, to_column(code.expires));
    PLAYFS_CHECK(put->run());
    PLAYFS_TRY(auto drop, connection.use(kDropOldCodes));
    return drop->bind(1, code.email).bind(2, code.client).bind(3, static_cast<std::int64_t>(kLiveCodes)).run();
  }));
  return is_put;
}

Result<std::optional<SignedIn>> SqliteStore::redeem_code(std::string_view email, std::string_view code_hash,
                                                         std::string_view key_hash, std::span<const Charge> charges) {
  std::optional<SignedIn> result;
  PLAYFS_CHECK(connections_->write([&](Connection& connection) -> Status {
    WallTime now = clock_.wall();
    for (const Charge& charge : charges) PLAYFS_CHECK(charge_write(connection, charge, now));
    PLAYFS_TRY(bool right, is_code_of(connection, email, code_hash, now));
    // A wrong code is not an error here: the transaction must commit for the attempt to count.
    if (!right) return {};
    PLAYFS_TRY(auto use_up, connection.use(kUseUp));
    PLAYFS_CHECK(use_up->bind(1, email).run());
    PLAYFS_TRY(result, add_key(connection, email, key_hash, now, random_));
    return {};
  }));
  return result;
}

Result<SignedIn> SqliteStore::sign_in(std::string_view email, std::string_view key_hash) {
  SignedIn result;
  PLAYFS_CHECK(connections_->write([&](Connection& connection) -> Status {
    PLAYFS_TRY(result, add_key(connection, email, key_hash, clock_.wall(), random_));
    return {};
  }));
  return result;
}

Result<std::vector<Account>> SqliteStore::list_accounts(std::string_view after, std::size_t limit) {
  PLAYFS_TRY(auto connection, connections_->read());
  PLAYFS_TRY(auto query, connection->use(kListAccounts));
  query->bind(1, after).bind(2, static_cast<std::int64_t>(limit));
  std::vector<Account> accounts;
  for (;;) {
    PLAYFS_TRY(bool row, query->step());
    if (!row) return accounts;
    accounts.push_back(account_of_row(*query));
  }
}

Result<std::optional<Account>> SqliteStore::find_account(std::string_view id_or_email) {
  PLAYFS_TRY(auto connection, connections_->read());
  PLAYFS_TRY(auto query, connection->use(kFindAccount));
  PLAYFS_TRY(bool known, query->bind(1, id_or_email).step());
  if (!known) return std::nullopt;
  return account_of_row(*query);
}

Result<std::vector<ApiKey>> SqliteStore::keys_of(std::string_view account) {
  PLAYFS_TRY(auto connection, connections_->read());
  PLAYFS_TRY(auto query, connection->use(kKeysOf));
  query->bind(1, account);
  std::vector<ApiKey> keys;
  for (;;) {
    PLAYFS_TRY(bool row, query->step());
    if (!row) return keys;
    keys.push_back({std::string(query->text(0).substr(0, kKeyIdLength)), from_column(query->integer(1))});
  }
}

Result<std::int64_t> SqliteStore::revoke_keys(std::string_view account, std::string_view key_id) {
  std::int64_t revoked = 0;
  PLAYFS_CHECK(connections_->write([&](Connection& connection) -> Status {
    revoked = 0;
    PLAYFS_TRY(auto revoke, connection.use(kRevokeKeys));
    revoke->bind(1, account).bind(2, key_id).bind(3, static_cast<std::int64_t>(kKeyIdLength));
    for (;; ++revoked) {
      PLAYFS_TRY(bool row, revoke->step());
      if (!row) return {};
    }
  }));
  return revoked;
}

}  // namespace playfs::service
