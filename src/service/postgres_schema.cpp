#include "service/postgres_schema.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "service/closed_store.h"
#include "service/postgres_transaction.h"

namespace playfs::service {

namespace {

// `site` has one row. Every transaction that adds or changes records locks it last, and takes from it the next
// position, change number and time. So these become visible in order, whichever server assigned them. The other tables
// are SQLite's (sqlite_schema.cpp), except that the writes counted against a limit are an array in the bucket's row,
// which also serves as the lock for counting them.
constexpr std::array kCreate = {
    R"sql(CREATE TABLE site (
      id text NOT NULL,
      position bigint NOT NULL,
      changed bigint NOT NULL,
      created_at bigint NOT NULL
    ))sql",
    R"sql(CREATE TABLE records (
      position bigint PRIMARY KEY,
      collection text NOT NULL,
      id bytea NOT NULL UNIQUE,
      created_at bigint NOT NULL,
      updated_at bigint NOT NULL,
      status text NOT NULL,
      owner bytea NOT NULL,
      request_key bytea,
      fields bytea NOT NULL,
      belongs_to bytea,
      changed bigint
    ))sql",
    "CREATE INDEX records_of_collection ON records (collection, position)",
    "CREATE INDEX records_of_whole ON records (collection, belongs_to, position) WHERE belongs_to IS NOT NULL",
    "CREATE UNIQUE INDEX records_by_change ON records (changed) WHERE changed IS NOT NULL",
    "CREATE UNIQUE INDEX records_by_request_key ON records (request_key) WHERE request_key IS NOT NULL",
    R"sql(CREATE TABLE write_limits (
      bucket bytea PRIMARY KEY,
      expiries bigint[] NOT NULL,
      allowance bigint NOT NULL,
      granted bigint NOT NULL,
      last_hour bigint NOT NULL
    ))sql",
    // Most updates do not touch last_hour, and so need no new entries in the indexes.
    "CREATE INDEX write_limits_by_hour ON write_limits (last_hour)",
    R"sql(CREATE TABLE accounts (
      id bytea PRIMARY KEY,
      email bytea NOT NULL UNIQUE,
      created_at bigint NOT NULL
    ))sql",
    R"sql(CREATE TABLE api_keys (
      number bigint GENERATED ALWAYS AS IDENTITY,
      hash bytea PRIMARY KEY,
      account bytea NOT NULL REFERENCES accounts (id),
      created_at bigint NOT NULL
    ))sql",
    "CREATE INDEX api_keys_of_account ON api_keys (account, created_at, number)",
    R"sql(CREATE TABLE sign_in_codes (
      number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      email bytea NOT NULL,
      client bytea NOT NULL,
      hash bytea NOT NULL,
      expires bigint NOT NULL
    ))sql",
    "CREATE INDEX sign_in_codes_of_email ON sign_in_codes (email, client, number)",
    "CREATE INDEX sign_in_codes_by_expiry ON sign_in_codes (expires)",
};

// Each write looks at it (closed_store.h), while it has the row anyway. Servers of version 1 do not know it, and write
// on; so they have to be stopped before a store is moved.
constexpr std::array kAddClosed = {"ALTER TABLE site ADD COLUMN closed text NOT NULL DEFAULT ''"};

/// One step, from the version before it.
struct Migration {
  std::span<const char* const> statements;
  std::int64_t oldest;  ///< servers of this version and newer ones can use the tables afterwards
};
constexpr std::array kMigrations = {Migration{kCreate, 1}, Migration{kAddClosed, 1}};
constexpr std::int64_t kVersion = kMigrations.size();
/// The first servers that heed `closed`.
constexpr std::int64_t kClosedSince = 2;

struct Version {
  std::int64_t version = 0;
  std::int64_t oldest = 0;
};

/// nullopt without tables.
Result<std::optional<Version>> version_of(PostgresPool& pool) {
  const PostgresStatement ask{"SELECT version, oldest FROM schema_version"};
  auto rows = pool.run(ask);
  // At SERIALIZABLE the snapshot may be older than a table that has just been made, with its row. The next one is not.
  if (rows && rows->empty()) rows = pool.run(ask);
  if (!rows && rows.error().remote_code == kUndefinedTable) return std::nullopt;
  if (!rows) return fail(std::move(rows).error());
  if (rows->empty()) return fail(ErrorCode::corrupt, "the database does not say which version its tables have");
  return Version{rows->integer(0, 0), rows->integer(0, 1)};
}

Error is_newer(const Version& found) {
  return {ErrorCode::not_supported,
          "the store was written by a newer version of playfs: its tables have version " +
              std::to_string(found.version) + ", this one knows " + std::to_string(kVersion),
          "update playfs"};
}

Status refuse_newer(const Version& found) {
  if (found.version <= kVersion || found.oldest <= kVersion) return {};
  return fail(is_newer(found));
}

Status create_version(PostgresPool& pool) {
  return in_schema_transaction(pool, [](PostgresConnection& connection, PostgresDeadline deadline) -> Status {
    PLAYFS_TRY(auto done, connection.run({{"CREATE TABLE schema_version (only_row bigint PRIMARY KEY,"
                                           " version bigint NOT NULL, oldest bigint NOT NULL)"},
                                          {"INSERT INTO schema_version VALUES (1, 0, 0)"}},
                                         deadline));
    return {};
  });
}

Status migrate(PostgresPool& pool, const PostgresSite& created) {
  return in_schema_transaction(pool, [&](PostgresConnection& connection, PostgresDeadline deadline) -> Status {
    PLAYFS_TRY(auto row, connection.run({{"SELECT version, oldest FROM schema_version FOR UPDATE"}}, deadline));
    const std::int64_t version = row.front().empty() ? 0 : row.front().integer(0, 0);
    if (version >= kVersion) return {};  // another server was first
    std::vector<PostgresStatement> statements;
    for (auto step = static_cast<std::size_t>(version); step < kMigrations.size(); ++step)
      for (const char* sql : kMigrations[step].statements) statements.push_back({sql});
    if (version == 0)
      statements.push_back({"INSERT INTO site (id, position, changed, created_at, closed) VALUES ($1, 0, 0, 0, $2)",
                            Parameters().text(created.id).text(created.closed)});
    const bool is_closed = version == 0 && created.closed != kOpenStore;
    statements.push_back(
        {"UPDATE schema_version SET version = $1, oldest = $2",
         Parameters().integer(kVersion).integer(is_closed ? kClosedSince : kMigrations.back().oldest)});
    PLAYFS_TRY(auto done, connection.run(statements, deadline));
    return {};
  });
}

Result<PostgresSite> site_of(PostgresPool& pool) {
  PLAYFS_TRY(auto site, pool.run({"SELECT id, closed FROM site"}));
  if (site.empty()) return fail(ErrorCode::corrupt, "the store has no site id");
  return PostgresSite{site.string(0, 0), site.string(0, 1)};
}

/// Whether two servers have created the same table at once: a duplicate table, the type of its rows, or one of its
/// catalogue entries.
bool is_race(const Error& error) {
  return error.remote_code == "42P07" || error.remote_code == "42710" || error.remote_code == kUniqueViolation;
}

Result<Version> require_version(PostgresPool& pool) {
  PLAYFS_TRY(auto version, version_of(pool));
  if (!version || version->version == 0) return fail(ErrorCode::not_found, "there is no store in this database");
  PLAYFS_CHECK(refuse_newer(*version));
  if (version->version >= kVersion) return *version;
  return fail(ErrorCode::not_supported, "the store was written by another version of playfs",
              "open it once with this version: playfs serve");
}

}  // namespace

Result<PostgresSite> require_postgres_schema(PostgresPool& pool) {
  PLAYFS_CHECK(require_version(pool));
  return site_of(pool);
}

Result<PostgresSite> require_this_postgres_schema(PostgresPool& pool) {
  PLAYFS_TRY(const Version version, require_version(pool));
  if (version.version > kVersion) return fail(is_newer(version));
  return site_of(pool);
}

Result<PostgresSite> prepare_postgres_schema(PostgresPool& pool, const PostgresSite& created) {
  PLAYFS_TRY(auto version, version_of(pool));
  if (!version) {
    if (auto made = create_version(pool); !made && !is_race(made.error())) return fail(std::move(made).error());
    version = Version{};
  }
  PLAYFS_CHECK(refuse_newer(*version));
  if (version->version < kVersion) PLAYFS_CHECK(migrate(pool, created));
  return site_of(pool);
}

PostgresStatement set_oldest_server(bool is_closed) {
  // What a newer playfs has decided stays.
  return {"UPDATE schema_version SET oldest = $1 WHERE version = $2",
          Parameters().integer(is_closed ? kClosedSince : kMigrations.back().oldest).integer(kVersion)};
}

}  // namespace playfs::service
