#include "publish/journal_schema.h"

#include <fmt/format.h>

#include "publish/journal_rows.h"

namespace playfs::publish {

namespace {

constexpr int kVersion = 4;

const char* const kSchema = R"(
CREATE TABLE IF NOT EXISTS publications(
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  tx TEXT NOT NULL UNIQUE,
  agent TEXT NOT NULL,
  message TEXT NOT NULL,
  step INTEGER NOT NULL,
  base TEXT NOT NULL DEFAULT '',
  files_changed INTEGER NOT NULL DEFAULT 0,
  key TEXT NOT NULL DEFAULT '',
  body TEXT NOT NULL DEFAULT '',
  revision TEXT NOT NULL DEFAULT '',
  merged TEXT NOT NULL DEFAULT '',
  conflicts TEXT NOT NULL DEFAULT '',
  may_merge INTEGER NOT NULL DEFAULT 1,
  chunks INTEGER NOT NULL DEFAULT 0,
  writes INTEGER NOT NULL DEFAULT 0,
  ending INTEGER NOT NULL DEFAULT 0,
  error_code TEXT NOT NULL DEFAULT '',
  error_message TEXT NOT NULL DEFAULT '',
  error_hint TEXT NOT NULL DEFAULT '',
  digest TEXT NOT NULL DEFAULT ''
);
CREATE TABLE IF NOT EXISTS uploads(
  publication INTEGER NOT NULL REFERENCES publications(number) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  key TEXT NOT NULL,
  body TEXT NOT NULL,
  text_hash TEXT NOT NULL,
  text_size INTEGER NOT NULL,
  chunk TEXT NOT NULL DEFAULT '',
  -- Of a recipe, where there is one: then body is empty.
  path TEXT NOT NULL DEFAULT '',
  revision TEXT NOT NULL DEFAULT '',
  sequence INTEGER NOT NULL DEFAULT 0,
  is_base64 INTEGER NOT NULL DEFAULT 0,
  text_offset INTEGER NOT NULL DEFAULT 0,
  body_hash TEXT NOT NULL DEFAULT '',
  digest TEXT NOT NULL DEFAULT '',  -- of all but chunk
  PRIMARY KEY(publication, number)
) WITHOUT ROWID;
-- Numbered as they come, so that the oldest can go.
CREATE TABLE IF NOT EXISTS known_chunks(
  number INTEGER PRIMARY KEY,
  text_hash TEXT NOT NULL UNIQUE,
  text_size INTEGER NOT NULL,
  chunk TEXT NOT NULL,
  digest TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS known_by_id ON known_chunks(chunk);
CREATE TABLE IF NOT EXISTS known_sizes(size INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS facts(
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  value TEXT NOT NULL,
  digest TEXT NOT NULL DEFAULT ''
);
)";

/// Migrations from each version to the next.
constexpr const char* kFromVersion1 = R"(
ALTER TABLE publications ADD COLUMN merged TEXT NOT NULL DEFAULT '';
ALTER TABLE publications ADD COLUMN conflicts TEXT NOT NULL DEFAULT '';
ALTER TABLE publications ADD COLUMN may_merge INTEGER NOT NULL DEFAULT 1;
)";

/// The uploads of version 2 have a form that is still used: bodies without a recipe.
constexpr const char* kFromVersion2 = R"(
ALTER TABLE uploads ADD COLUMN path TEXT NOT NULL DEFAULT '';
ALTER TABLE uploads ADD COLUMN revision TEXT NOT NULL DEFAULT '';
ALTER TABLE uploads ADD COLUMN sequence INTEGER NOT NULL DEFAULT 0;
ALTER TABLE uploads ADD COLUMN is_base64 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE uploads ADD COLUMN text_offset INTEGER NOT NULL DEFAULT 0;
ALTER TABLE uploads ADD COLUMN body_hash TEXT NOT NULL DEFAULT '';
ALTER TABLE known_chunks RENAME TO known_chunks_2;
ALTER TABLE facts RENAME TO facts_2;
)";
/// Runs once the current tables exist.
constexpr const char* kMovedFromVersion2 = R"(
INSERT INTO known_chunks(text_hash, text_size, chunk) SELECT text_hash, text_size, chunk FROM known_chunks_2;
INSERT INTO known_sizes(size) SELECT DISTINCT text_size FROM known_chunks_2;
INSERT INTO facts(name, value) SELECT name, value FROM facts_2;
INSERT INTO facts(name, value)
  SELECT 'longest_id', longest FROM (SELECT max(length(CAST(chunk AS BLOB))) AS longest FROM known_chunks_2)
  WHERE longest IS NOT NULL;
DROP TABLE known_chunks_2;
DROP TABLE facts_2;
)";

/// Rows have digests since version 4. The tables that are moved from version 2 are created with them.
constexpr const char* kFromVersion3 = R"(
ALTER TABLE publications ADD COLUMN digest TEXT NOT NULL DEFAULT '';
ALTER TABLE uploads ADD COLUMN digest TEXT NOT NULL DEFAULT '';
)";
constexpr const char* kAlsoFromVersion3 = R"(
ALTER TABLE known_chunks ADD COLUMN digest TEXT NOT NULL DEFAULT '';
ALTER TABLE facts ADD COLUMN digest TEXT NOT NULL DEFAULT '';
)";

Result<int> schema_version(Database& database) {
  PLAYFS_TRY(auto statement, database.prepare("PRAGMA user_version"));
  PLAYFS_CHECK(statement.step());
  return static_cast<int>(statement.integer(0));
}

}  // namespace

/// The database's own version is a number in its header, which may be damaged too.
Status bring_up_to_date(Database& database, const std::string& path) {
  PLAYFS_TRY(int version, schema_version(database));
  if (version > kVersion)
    return fail(ErrorCode::not_supported,
                fmt::format("{} was written by a newer version of playfs (format {})", path, version),
                "use that version, or let it publish what is queued first");
  if (version == kVersion) return {};
  const bool is_older = version > 0 && version < kVersion;
  if (is_older && database.prepare("SELECT digest FROM publications"))
    return fail(ErrorCode::corrupt, fmt::format("{} is damaged: its format is not {}", path, version));
  PLAYFS_TRY(auto transaction, Transaction::begin(database));
  if (version == 1) PLAYFS_CHECK(database.execute(kFromVersion1));
  if (version == 1 || version == 2) PLAYFS_CHECK(database.execute(kFromVersion2));
  if (is_older) PLAYFS_CHECK(database.execute(kFromVersion3));
  if (version == 3) PLAYFS_CHECK(database.execute(kAlsoFromVersion3));
  PLAYFS_CHECK(database.execute(kSchema));
  if (version == 1 || version == 2) PLAYFS_CHECK(database.execute(kMovedFromVersion2));
  if (is_older) PLAYFS_CHECK(write_digests(database));
  PLAYFS_CHECK(database.execute(fmt::format("PRAGMA user_version = {}", kVersion)));
  return transaction.commit();
}

}  // namespace playfs::publish
