#include "service/sqlite_schema.h"

#include <cstdint>

namespace playfs::service {

namespace {

constexpr std::int64_t kVersion = 7;

// `position` is the order of all records. The indexes that end in it give a page of one collection, or of one record's
// parts, the same cost at any depth. `changed` numbers the latest change of each record, over all collections;
// file_chunks have none, since nobody waits for them. `writes` holds one row for each write that still counts against a
// limit.
constexpr const char* kTables = R"sql(
  CREATE TABLE IF NOT EXISTS site (id TEXT NOT NULL);

  CREATE TABLE IF NOT EXISTS records (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    collection TEXT NOT NULL,
    id TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    status TEXT NOT NULL,
    owner TEXT NOT NULL,
    request_key BLOB,
    fields TEXT NOT NULL,
    belongs_to TEXT,
    changed INTEGER
  );
  CREATE INDEX IF NOT EXISTS records_of_collection ON records (collection, position);
  CREATE INDEX IF NOT EXISTS records_of_whole ON records (collection, belongs_to, position)
    WHERE belongs_to IS NOT NULL;
  CREATE UNIQUE INDEX IF NOT EXISTS records_by_change ON records (changed) WHERE changed IS NOT NULL;
  CREATE UNIQUE INDEX IF NOT EXISTS records_by_request_key ON records (request_key) WHERE request_key IS NOT NULL;

  CREATE TABLE IF NOT EXISTS writes (bucket TEXT NOT NULL, expires INTEGER NOT NULL);
  CREATE INDEX IF NOT EXISTS writes_of_bucket ON writes (bucket, expires);
  CREATE INDEX IF NOT EXISTS writes_by_expiry ON writes (expires);

  CREATE TABLE IF NOT EXISTS accounts (
    id TEXT PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
  );
  CREATE TABLE IF NOT EXISTS api_keys (
    hash BLOB PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts (id),
    created_at INTEGER NOT NULL
  );
  CREATE INDEX IF NOT EXISTS api_keys_of_account ON api_keys (account, created_at);
  CREATE TABLE IF NOT EXISTS sign_in_codes (
    email TEXT NOT NULL,
    client TEXT NOT NULL,
    hash TEXT NOT NULL,
    expires INTEGER NOT NULL
  );
  CREATE INDEX IF NOT EXISTS sign_in_codes_of_email ON sign_in_codes (email, client);
  CREATE INDEX IF NOT EXISTS sign_in_codes_by_expiry ON sign_in_codes (expires);
)sql";

// Stores older than version 4 have only the fields to tell what a record belongs to.
constexpr const char* kAddBelonging = R"sql(
  ALTER TABLE records ADD COLUMN belongs_to TEXT;
  UPDATE records SET belongs_to = fields ->> '$.project'
    WHERE collection = 'revisions' AND json_type(fields, '$.project') = 'text';
  UPDATE records SET belongs_to = fields ->> '$.thread'
    WHERE collection = 'messages' AND json_type(fields, '$.thread') = 'text';
  UPDATE records SET belongs_to = NULL WHERE length(CAST(belongs_to AS BLOB)) NOT BETWEEN 1 AND 255;
)sql";

// Nobody has a cursor of a store older than version 6, so any order of its changes will do.
constexpr const char* kAddChanges = R"sql(
  ALTER TABLE records ADD COLUMN changed INTEGER;
  UPDATE records SET changed = position WHERE collection <> 'file_chunks';
)sql";

// Each write looks at it (closed_store.h).
constexpr const char* kAddClosed = "ALTER TABLE site ADD COLUMN closed TEXT NOT NULL DEFAULT ''";

Result<std::int64_t> version_of(Database& database) {
  PLAYFS_TRY(Statement query, database.prepare("PRAGMA user_version"));
  PLAYFS_TRY(bool known, query.step());
  return known ? query.integer(0) : 0;
}

Result<SqliteSite> site_of(Database& database) {
  PLAYFS_TRY(Statement site, database.prepare("SELECT id, closed FROM site"));
  PLAYFS_TRY(bool has_site, site.step());
  if (!has_site) return fail(ErrorCode::corrupt, "the store has no site id");
  return SqliteSite{std::string(site.text(0)), std::string(site.text(1))};
}

/// From any older version; 0 is an empty file.
Status upgrade(Database& database, std::int64_t version, const SqliteSite& created) {
  if (version > 0 && version < 4) PLAYFS_CHECK(database.execute(kAddBelonging));
  if (version > 0 && version < 6) PLAYFS_CHECK(database.execute(kAddChanges));
  // Before version 5 a code was not bound to a client. Codes live ten minutes, so they are dropped.
  if (version < 5) PLAYFS_CHECK(database.execute("DROP TABLE IF EXISTS sign_in_codes"));
  PLAYFS_CHECK(database.execute(kTables));
  PLAYFS_CHECK(database.execute(kAddClosed));
  PLAYFS_TRY(Statement name, database.prepare("INSERT INTO site (id, closed) SELECT ?1, ?2"
                                              " WHERE NOT EXISTS (SELECT * FROM site)"));
  PLAYFS_CHECK(name.bind(1, created.id).bind(2, created.closed).run());
  return database.execute("PRAGMA user_version = " + std::to_string(kVersion));
}

}  // namespace

Result<SqliteSite> require_current_schema(Database& database) {
  PLAYFS_TRY(std::int64_t version, version_of(database));
  if (version == kVersion) return site_of(database);
  if (version > kVersion)
    return fail(ErrorCode::not_supported, "the store was written by a newer version of playfs", "update playfs");
  if (version == 0) return fail(ErrorCode::not_found, "there is no store in this file");
  return fail(ErrorCode::not_supported, "the store was written by another version of playfs",
              "open it once with this version: playfs serve");
}

Result<SqliteSite> prepare_schema(Database& database, const SqliteSite& created) {
  PLAYFS_TRY(Transaction transaction, Transaction::begin(database));
  PLAYFS_TRY(std::int64_t version, version_of(database));
  if (version < kVersion) PLAYFS_CHECK(upgrade(database, version, created));
  PLAYFS_TRY(SqliteSite site, require_current_schema(database));
  PLAYFS_CHECK(transaction.commit());
  return site;
}

}  // namespace playfs::service
