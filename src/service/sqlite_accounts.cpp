#include "service/sqlite_connections.h"
#include "service/sqlite_schema.h"
#include "service/sqlite_store.h"

namespace playfs::service {

namespace {
constexpr std::string_view kAccountOfKey = "SELECT account FROM api_keys WHERE hash = ?1";
constexpr std::string_view kAccountOfEmail = "SELECT id FROM accounts WHERE email = ?1";
constexpr std::string_view kAddAccount = "INSERT INTO accounts (id, email, created_at) VALUES (?1, ?2, ?3)";
constexpr std::string_view kAddKey = "INSERT INTO api_keys (hash, account, created_at) VALUES (?1, ?2, ?3)";
constexpr std::string_view kDropOldKeys =
    "DELETE FROM api_keys WHERE account = ?1 AND rowid NOT IN"
    " (SELECT rowid FROM api_keys WHERE account = ?1 ORDER BY created_at DESC, rowid DESC LIMIT ?2)";

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
}  // namespace

Result<std::optional<std::string>> SqliteStore::account_of_key(std::string_view key_hash) {
  PLAYFS_TRY(auto connection, connections_->read());
  PLAYFS_TRY(auto query, connection->use(kAccountOfKey));
  PLAYFS_TRY(bool known, query->bind_blob(1, key_hash).step());
  if (!known) return std::nullopt;
  return std::string(query->text(0));
}

Result<SignedIn> SqliteStore::sign_in(std::string_view email, std::string_view key_hash) {
  SignedIn result;
  PLAYFS_CHECK(connections_->write([&](Connection& connection) -> Status {
    PLAYFS_TRY(result, add_key(connection, email, key_hash, clock_.wall(), random_));
    return {};
  }));
  return result;
}

}  // namespace playfs::service
