#include <vector>

#include "service/identity.h"
#include "service/postgres_limits.h"
#include "service/postgres_pool.h"
#include "service/postgres_store.h"
#include "service/postgres_transaction.h"
#include "service/stored_time.h"

namespace playfs::service {

namespace {

constexpr const char* kAccountOfKey = "SELECT account FROM api_keys WHERE hash = $1";
constexpr const char* kAddAccount =
    "INSERT INTO accounts (id, email, created_at) VALUES ($1, $2, $3) ON CONFLICT (email) DO NOTHING";
// Locks the account, so that of two concurrent sign-ins the later one sees (and counts) the earlier one's key.
constexpr const char* kAccountOfEmail = "SELECT id FROM accounts WHERE email = $1 FOR UPDATE";
constexpr const char* kAddKey = "INSERT INTO api_keys (hash, account, created_at) VALUES ($1, $2, $3)";
constexpr const char* kDropOldKeys =
    "DELETE FROM api_keys WHERE account = $1 AND number NOT IN"
    " (SELECT number FROM api_keys WHERE account = $1 ORDER BY created_at DESC, number DESC LIMIT $2)";

#define PLAYFS_POSTGRES_ACCOUNT \
  "SELECT id, email, created_at, (SELECT count(*) FROM api_keys WHERE account = accounts.id) FROM accounts"
constexpr const char* kListAccounts = PLAYFS_POSTGRES_ACCOUNT " WHERE email > $1 ORDER BY email LIMIT $2";
// No id contains an @, and every address does.
constexpr const char* kFindAccount = PLAYFS_POSTGRES_ACCOUNT " WHERE id = $1 OR email = $1";
constexpr const char* kKeysOf =
    "SELECT hash, created_at FROM api_keys WHERE account = $1 ORDER BY created_at DESC, number DESC";
// Locks the account, so that a sign-in in progress ends first and its key is revoked too.
constexpr const char* kLockAccount = "SELECT id FROM accounts WHERE id = $1 FOR UPDATE";
constexpr const char* kRevokeKeys =
    "DELETE FROM api_keys WHERE account = $1 AND (octet_length($2) = 0 OR substr(hash, 1, $3::integer) = $2)"
    " RETURNING number";

constexpr const char* kForgetCodes = "DELETE FROM sign_in_codes WHERE expires <= $1";
constexpr const char* kPutCode = "INSERT INTO sign_in_codes (email, client, hash, expires) VALUES ($1, $2, $3, $4)";
constexpr const char* kDropOldCodes =
    "DELETE FROM sign_in_codes WHERE email = $1 AND client = $2 AND number NOT IN"
    " (SELECT number FROM sign_in_codes WHERE email = $1 AND client = $2 ORDER BY number DESC LIMIT $3)";
constexpr const char* kCodesOfEmail = "SELECT hash FROM sign_in_codes WHERE email = $1 AND expires > $2 FOR UPDATE";
// A code that expires later than a new one would was made before a clock was set back.
constexpr const char* kLastMailed =
    "SELECT expires FROM sign_in_codes WHERE email = $1 AND expires > $2 AND expires <= $3 ORDER BY expires DESC LIMIT "
    "1";
constexpr const char* kUseUp = "DELETE FROM sign_in_codes WHERE email = $1";

/// All of them or none: the caller's transaction ends if this fails.
Status count_charges(PostgresConnection& connection, std::span<const Charge> charges, WallTime now,
                     PostgresDeadline deadline) {
  PostgresCharges counted;
  for (const Charge& charge : charges) counted.add(charge);
  if (counted.empty()) return {};
  PLAYFS_TRY(auto answers, connection.run({counted.statement(now)}, deadline));
  counted.granted(answers.front());
  for (const Charge& charge : charges) PLAYFS_CHECK(counted.take(charge, now));
  return {};
}

/// Counts a mail. False if there have been enough, and a code that was mailed lately is still good.
Result<bool> may_mail(PostgresConnection& connection, const SignInCode& code, const MailLimit& limit, WallTime now,
                      PostgresDeadline deadline) {
  auto counted = count_charges(connection, std::span(&limit.mails, 1), now, deadline);
  if (counted) return true;
  if (counted.error().code != ErrorCode::rate_limited) return fail(std::move(counted).error());
  const auto lately =
      Parameters().bytes(code.email).integer(to_column(limit.good_until)).integer(to_column(code.expires));
  PLAYFS_TRY(auto mailed, connection.run({{kLastMailed, lately}}, deadline));
  return mailed.back().empty();
}

Result<SignedIn> add_key(PostgresConnection& connection, std::string_view email, std::string_view key_hash,
                         WallTime now, Random& random, PostgresDeadline deadline) {
  const std::string new_account = "acct_" + random.hex(20);
  const std::int64_t time = to_column(now);
  PLAYFS_TRY(auto account, connection.run({{kAddAccount, Parameters().bytes(new_account).bytes(email).integer(time)},
                                           {kAccountOfEmail, Parameters().bytes(email)}},
                                          deadline));
  if (account.back().empty()) return fail(ErrorCode::internal, "an account that was added is not there");
  SignedIn result{account.back().string(0, 0), false};
  result.is_new = result.account == new_account;
  PLAYFS_TRY(auto added, connection.run({{kAddKey, Parameters().bytes(key_hash).bytes(result.account).integer(time)},
                                         {kDropOldKeys, Parameters().bytes(result.account).integer(kKeysPerAccount)}},
                                        deadline));
  return result;
}

Account account_of_row(const PostgresRows& rows, int row) {
  return {rows.string(row, 0), rows.string(row, 1), from_column(rows.integer(row, 2)), rows.integer(row, 3)};
}

bool has_code(const PostgresRows& rows, std::string_view code_hash) {
  bool is_one = false;
  for (int row = 0; row < rows.count(); ++row)
    if (equal_in_constant_time(rows.bytes(row, 0), code_hash)) is_one = true;
  return is_one;
}

}  // namespace

Result<std::optional<std::string>> PostgresStore::account_of_key(std::string_view key_hash) {
  PLAYFS_TRY(auto rows, readers_->run({kAccountOfKey, Parameters().bytes(key_hash)}));
  if (rows.empty()) return std::nullopt;
  return rows.string(0, 0);
}

Result<bool> PostgresStore::put_code(const SignInCode& code, const MailLimit& limit, std::span<const Charge> charges) {
  bool is_put = false;
  PLAYFS_CHECK(in_transaction(*writers_, [&](PostgresConnection& connection, PostgresDeadline deadline) -> Status {
    const WallTime now = clock_.wall();
    PLAYFS_CHECK(count_charges(connection, charges, now, deadline));
    PLAYFS_TRY(is_put, may_mail(connection, code, limit, now, deadline));
    if (!is_put) return {};
    const auto of_client = Parameters().bytes(code.email).bytes(code.client);
    auto put = of_client, drop = of_client;
    put.bytes(code.hash).integer(to_column(code.expires));
    drop.integer(kLiveCodes);
    PLAYFS_TRY(auto done, connection.run({{kForgetCodes, Parameters().integer(to_column(now))},
                                          {kPutCode, std::move(put)},
                                          {kDropOldCodes, std::move(drop)}},
                                         deadline));
    return {};
  }));
  return is_put;
}

Result<std::optional<SignedIn>> PostgresStore::redeem_code(std::string_view email, std::string_view code_hash,
                                                           std::string_view key_hash, std::span<const Charge> charges) {
  std::optional<SignedIn> result;
  PLAYFS_CHECK(in_transaction(*writers_, [&](PostgresConnection& connection, PostgresDeadline deadline) -> Status {
    result.reset();
    const WallTime now = clock_.wall();
    PLAYFS_CHECK(count_charges(connection, charges, now, deadline));
    PLAYFS_TRY(auto codes,
               connection.run({{kCodesOfEmail, Parameters().bytes(email).integer(to_column(now))}}, deadline));
    // A wrong code is not an error here: the transaction must commit for the attempt to count.
    if (!has_code(codes.front(), code_hash)) return {};
    PLAYFS_TRY(auto used_up, connection.run({{kUseUp, Parameters().bytes(email)}}, deadline));
    PLAYFS_TRY(result, add_key(connection, email, key_hash, now, random_, deadline));
    return {};
  }));
  return result;
}

Result<SignedIn> PostgresStore::sign_in(std::string_view email, std::string_view key_hash) {
  SignedIn result;
  PLAYFS_CHECK(in_transaction(*writers_, [&](PostgresConnection& connection, PostgresDeadline deadline) -> Status {
    PLAYFS_TRY(result, add_key(connection, email, key_hash, clock_.wall(), random_, deadline));
    return {};
  }));
  return result;
}

Result<std::vector<Account>> PostgresStore::list_accounts(std::string_view after, std::size_t limit) {
  PLAYFS_TRY(auto rows,
             readers_->run({kListAccounts, Parameters().bytes(after).integer(static_cast<std::int64_t>(limit))}));
  std::vector<Account> accounts;
  for (int row = 0; row < rows.count(); ++row) accounts.push_back(account_of_row(rows, row));
  return accounts;
}

Result<std::optional<Account>> PostgresStore::find_account(std::string_view id_or_email) {
  PLAYFS_TRY(auto rows, readers_->run({kFindAccount, Parameters().bytes(id_or_email)}));
  if (rows.empty()) return std::nullopt;
  return account_of_row(rows, 0);
}

Result<std::vector<ApiKey>> PostgresStore::keys_of(std::string_view account) {
  PLAYFS_TRY(auto rows, readers_->run({kKeysOf, Parameters().bytes(account)}));
  std::vector<ApiKey> keys;
  for (int row = 0; row < rows.count(); ++row)
    keys.push_back({std::string(rows.bytes(row, 0).substr(0, kKeyIdLength)), from_column(rows.integer(row, 1))});
  return keys;
}

Result<std::int64_t> PostgresStore::revoke_keys(std::string_view account, std::string_view key_id) {
  std::int64_t revoked = 0;
  PLAYFS_CHECK(in_transaction(*writers_, [&](PostgresConnection& connection, PostgresDeadline deadline) -> Status {
    const auto of_account = Parameters().bytes(account);
    auto keys = of_account;
    keys.bytes(key_id).integer(static_cast<std::int64_t>(kKeyIdLength));
    PLAYFS_TRY(auto rows, connection.run({{kLockAccount, of_account}, {kRevokeKeys, keys}}, deadline));
    revoked = rows.back().count();
    return {};
  }));
  return revoked;
}

}  // namespace playfs::service
