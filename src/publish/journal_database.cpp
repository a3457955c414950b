// The journal as a SQLite database: a row for each publication, one for each chunk that it uploads.
#include <fmt/format.h>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/sqlite.h"
#include "publish/journal.h"

namespace playfs::publish {

namespace {

constexpr int kVersion = 3;

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
  error_hint TEXT NOT NULL DEFAULT ''
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
  PRIMARY KEY(publication, number)
) WITHOUT ROWID;
-- Numbered as they come, so that the oldest can go.
CREATE TABLE IF NOT EXISTS known_chunks(
  number INTEGER PRIMARY KEY,
  text_hash TEXT NOT NULL UNIQUE,
  text_size INTEGER NOT NULL,
  chunk TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS known_by_id ON known_chunks(chunk);
CREATE TABLE IF NOT EXISTS known_sizes(size INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS facts(number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, value TEXT NOT NULL);
)";

constexpr const char* kColumns =
    "number, tx, agent, message, step, base, files_changed, key, body, revision, chunks, writes, ending, error_code, "
    "error_message, error_hint, merged, conflicts, may_merge";

/// From each version to the next.
constexpr const char* kFromVersion1 = R"(
ALTER TABLE publications ADD COLUMN merged TEXT NOT NULL DEFAULT '';
ALTER TABLE publications ADD COLUMN conflicts TEXT NOT NULL DEFAULT '';
ALTER TABLE publications ADD COLUMN may_merge INTEGER NOT NULL DEFAULT 1;
)";

/// The uploads of version 2 are a form that is still written: bodies without a recipe.
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
/// Once the tables of today are there.
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

Publication read_publication(const Statement& row) {
  Publication publication;
  publication.number = row.integer(0);
  publication.tx = row.text(1);
  publication.agent = row.text(2);
  publication.message = row.text(3);
  publication.step = static_cast<Step>(row.integer(4));
  publication.base = RevisionId(std::string(row.text(5)));
  publication.files_changed = static_cast<std::uint32_t>(row.integer(6));
  publication.key = row.text(7);
  publication.body = row.text(8);
  publication.revision = RevisionId(std::string(row.text(9)));
  publication.chunks = static_cast<std::uint32_t>(row.integer(10));
  publication.writes = static_cast<std::uint32_t>(row.integer(11));
  publication.ending = static_cast<Ending>(row.integer(12));
  publication.error_code = row.text(13);
  publication.error_message = row.text(14);
  publication.error_hint = row.text(15);
  publication.merged = RevisionId(std::string(row.text(16)));
  publication.conflicts = row.text(17);
  publication.may_merge = row.integer(18) != 0;
  return publication;
}

Result<int> schema_version(Database& database) {
  PLAYFS_TRY(auto statement, database.prepare("PRAGMA user_version"));
  PLAYFS_CHECK(statement.step());
  return static_cast<int>(statement.integer(0));
}

class JournalDatabase final : public JournalStorage {
 public:
  JournalDatabase(Database database, std::int64_t most_known)
      : most_known_(most_known), database_(std::move(database)) {}

  Status write(const JournalChange& change) override {
    MutexLock lock(mutex_);
    PLAYFS_TRY(auto transaction, Transaction::begin(database_));
    if (change.publication) PLAYFS_CHECK(write_row(*change.publication, change.is_new));
    std::int64_t number = change.publication ? change.publication->number : 0;
    PLAYFS_CHECK(write_uploads(number, change.added, change.acknowledged));
    if (change.rekeyed) PLAYFS_CHECK(write_rekeyed(number, *change.rekeyed));
    PLAYFS_CHECK(write_known(change.acknowledged));
    PLAYFS_CHECK(write_known(change.known));
    PLAYFS_CHECK(forget_chunks(number, change.lost));
    for (const auto& [name, value] : change.facts) PLAYFS_CHECK(write_fact(name, value));
    if (change.is_last) PLAYFS_CHECK(drop_before(number));
    if (change.drops_behind) PLAYFS_CHECK(drop_behind(*change.drops_behind));
    return transaction.commit();
  }

  Result<std::optional<Publication>> front() override {
    return find(fmt::format("WHERE step <> {} ORDER BY number", static_cast<int>(Step::ended)));
  }
  Result<std::vector<Publication>> waiting() override {
    MutexLock lock(mutex_);
    PLAYFS_TRY(auto select,
               database_.prepare(fmt::format("SELECT {} FROM publications WHERE step <> {} ORDER BY number", kColumns,
                                             static_cast<int>(Step::ended))));
    std::vector<Publication> publications;
    for (;;) {
      PLAYFS_TRY(bool found, select.step());
      if (!found) return publications;
      publications.push_back(read_publication(select));
      publications.back().body.clear();
    }
  }
  Result<std::optional<Publication>> last() override {
    return find(fmt::format("WHERE step = {} ORDER BY number DESC", static_cast<int>(Step::ended)));
  }

  Result<std::vector<Upload>> unsent(const Publication& publication, std::int64_t from, std::size_t most) override {
    MutexLock lock(mutex_);
    PLAYFS_TRY(auto select,
               database_.prepare("SELECT number, key, body, text_hash, text_size, chunk, path, revision, "
                                 "sequence, is_base64, text_offset, body_hash FROM uploads WHERE "
                                 "publication = ? AND number >= ? AND chunk = '' ORDER BY number LIMIT ?"));
    select.bind(1, publication.number).bind(2, from).bind(3, static_cast<std::int64_t>(most));
    std::vector<Upload> uploads;
    for (;;) {
      PLAYFS_TRY(bool found, select.step());
      if (!found) return uploads;
      PLAYFS_TRY(Upload upload, read_upload(select));
      uploads.push_back(std::move(upload));
    }
  }

  Result<UploadTotals> totals(const Publication& publication) override {
    MutexLock lock(mutex_);
    PLAYFS_TRY(auto select,
               database_.prepare("SELECT count(*), coalesce(sum(text_size), 0), coalesce(sum(chunk <> ''), 0), "
                                 "coalesce(sum(CASE WHEN chunk <> '' THEN text_size END), 0) FROM uploads "
                                 "WHERE publication = ?"));
    select.bind(1, publication.number);
    PLAYFS_CHECK(select.step());
    return UploadTotals{static_cast<std::uint32_t>(select.integer(0)), static_cast<std::uint32_t>(select.integer(2)),
                        static_cast<std::uint64_t>(select.integer(1)), static_cast<std::uint64_t>(select.integer(3))};
  }

  Result<std::optional<KnownChunk>> known_chunk(const ContentHash& text) override {
    MutexLock lock(mutex_);
    if (!find_known_) {
      PLAYFS_TRY(find_known_, database_.prepare("SELECT chunk, text_size FROM known_chunks WHERE text_hash = ?"));
    }
    find_known_->bind(1, text.hex());
    PLAYFS_TRY(bool found, find_known_->step());
    if (!found) return std::optional<KnownChunk>();
    KnownChunk known{ChunkId(std::string(find_known_->text(0))), static_cast<std::uint64_t>(find_known_->integer(1))};
    find_known_->reset();
    return std::optional(std::move(known));
  }

  Result<std::optional<KnownText>> known_text(const ChunkId& chunk) override {
    MutexLock lock(mutex_);
    if (!find_text_) {
      PLAYFS_TRY(find_text_, database_.prepare("SELECT text_hash, text_size FROM known_chunks WHERE chunk = ?"));
    }
    find_text_->bind(1, chunk.text());
    PLAYFS_TRY(bool found, find_text_->step());
    if (!found) return std::optional<KnownText>();
    auto hash = ContentHash::parse(find_text_->text(0));
    auto size = static_cast<std::uint64_t>(find_text_->integer(1));
    find_text_->reset();
    if (!hash) return std::optional<KnownText>();
    return std::optional(KnownText{*hash, size});
  }

  Result<std::set<std::size_t>> known_sizes() override {
    MutexLock lock(mutex_);
    PLAYFS_TRY(auto select, database_.prepare("SELECT size FROM known_sizes"));
    std::set<std::size_t> sizes;
    for (;;) {
      PLAYFS_TRY(bool found, select.step());
      if (!found) return sizes;
      sizes.insert(static_cast<std::size_t>(select.integer(0)));
    }
  }

  Result<std::map<std::string, std::string>> facts(const std::string& prefix) override {
    MutexLock lock(mutex_);
    PLAYFS_TRY(auto select, database_.prepare("SELECT name, value FROM facts WHERE name >= ? AND name < ?"));
    std::string end = prefix;
    ++end.back();
    select.bind(1, prefix).bind(2, end);
    std::map<std::string, std::string> facts;
    for (;;) {
      PLAYFS_TRY(bool found, select.step());
      if (!found) return facts;
      facts.emplace(select.text(0).substr(prefix.size()), select.text(1));
    }
  }

  Result<std::string> fact(const std::string& name) override {
    MutexLock lock(mutex_);
    PLAYFS_TRY(auto select, database_.prepare("SELECT value FROM facts WHERE name = ?"));
    select.bind(1, name);
    PLAYFS_TRY(bool found, select.step());
    return found ? std::string(select.text(0)) : std::string();
  }

 private:
  Status write_row(const Publication& publication, bool is_new) PLAYFS_REQUIRES(mutex_) {
    if (is_new) {
      PLAYFS_TRY(
          auto insert,
          database_.prepare("INSERT INTO publications(tx, agent, message, step, may_merge) VALUES(?, ?, ?, ?, ?)"));
      return insert.bind(1, publication.tx)
          .bind(2, publication.agent)
          .bind(3, publication.message)
          .bind(4, static_cast<std::int64_t>(publication.step))
          .bind(5, std::int64_t{publication.may_merge})
          .run();
    }
    PLAYFS_TRY(auto update,
               database_.prepare("UPDATE publications SET step = ?, base = ?, files_changed = ?, key = ?, "
                                 "body = ?, revision = ?, chunks = ?, writes = ?, ending = ?, error_code = ?, "
                                 "error_message = ?, error_hint = ?, merged = ?, conflicts = ? WHERE number = ?"));
    PLAYFS_CHECK(update.bind(1, static_cast<std::int64_t>(publication.step))
                     .bind(2, publication.base.text())
                     .bind(3, std::int64_t{publication.files_changed})
                     .bind(4, publication.key)
                     .bind(5, publication.body)
                     .bind(6, publication.revision.text())
                     .bind(7, std::int64_t{publication.chunks})
                     .bind(8, std::int64_t{publication.writes})
                     .bind(9, static_cast<std::int64_t>(publication.ending))
                     .bind(10, publication.error_code)
                     .bind(11, publication.error_message)
                     .bind(12, publication.error_hint)
                     .bind(13, publication.merged.text())
                     .bind(14, publication.conflicts)
                     .bind(15, publication.number)
                     .run());
    if (database_.rows_changed() != 1) return fail(ErrorCode::internal, "the journal has lost a publication");
    return {};
  }

  Status write_uploads(std::int64_t publication, const std::vector<Upload>& added,
                       const std::vector<Upload>& acknowledged) PLAYFS_REQUIRES(mutex_) {
    if (!added.empty()) {
      PLAYFS_TRY(auto insert,
                 database_.prepare("INSERT INTO uploads(publication, number, key, body, text_hash, text_size, path, "
                                   "revision, sequence, is_base64, text_offset, body_hash) "
                                   "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
      for (const auto& upload : added) {
        const Recipe recipe = upload.recipe.value_or(Recipe());
        PLAYFS_CHECK(insert.bind(1, publication)
                         .bind(2, upload.number)
                         .bind(3, upload.key)
                         .bind(4, upload.recipe ? std::string_view() : std::string_view(upload.body))
                         .bind(5, upload.text_hash.hex())
                         .bind(6, static_cast<std::int64_t>(upload.text_size))
                         .bind(7, recipe.path)
                         .bind(8, recipe.revision.text())
                         .bind(9, static_cast<std::int64_t>(recipe.sequence))
                         .bind(10, std::int64_t{recipe.encoding == ContentEncoding::base64})
                         .bind(11, static_cast<std::int64_t>(recipe.offset))
                         .bind(12, upload.recipe ? recipe.body_hash.hex() : std::string())
                         .run());
      }
    }
    if (!acknowledged.empty()) {
      PLAYFS_TRY(auto update, database_.prepare("UPDATE uploads SET chunk = ? WHERE publication = ? AND number = ?"));
      for (const auto& upload : acknowledged)
        PLAYFS_CHECK(update.bind(1, upload.chunk.text()).bind(2, publication).bind(3, upload.number).run());
    }
    return {};
  }

  Status write_rekeyed(std::int64_t publication, const Upload& upload) PLAYFS_REQUIRES(mutex_) {
    PLAYFS_TRY(auto update,
               database_.prepare("UPDATE uploads SET key = ?, body_hash = ? WHERE publication = ? AND number = ?"));
    return update.bind(1, upload.key)
        .bind(2, upload.recipe ? upload.recipe->body_hash.hex() : std::string())
        .bind(3, publication)
        .bind(4, upload.number)
        .run();
  }

  static Result<Upload> read_upload(const Statement& row) {
    auto hash = ContentHash::parse(row.text(3));
    if (!hash) return fail(ErrorCode::corrupt, "the journal has an upload without a hash");
    Upload upload{row.integer(0),
                  std::string(row.text(1)),
                  std::string(row.text(2)),
                  *hash,
                  static_cast<std::uint64_t>(row.integer(4)),
                  ChunkId(std::string(row.text(5)))};
    if (auto body_hash = ContentHash::parse(row.text(11)))
      upload.recipe = {std::string(row.text(6)),
                       RevisionId(std::string(row.text(7))),
                       static_cast<std::uint64_t>(row.integer(8)),
                       row.integer(9) != 0 ? ContentEncoding::base64 : ContentEncoding::text,
                       static_cast<std::uint64_t>(row.integer(10)),
                       *body_hash};
    return upload;
  }

  Status write_known(const std::vector<Upload>& uploads) PLAYFS_REQUIRES(mutex_) {
    if (uploads.empty()) return {};
    PLAYFS_TRY(auto size, database_.prepare("INSERT OR IGNORE INTO known_sizes(size) VALUES(?)"));
    for (const auto& upload : uploads) PLAYFS_CHECK(size.bind(1, static_cast<std::int64_t>(upload.text_size)).run());
    PLAYFS_TRY(auto known,
               database_.prepare("INSERT OR REPLACE INTO known_chunks(text_hash, text_size, chunk) VALUES(?, ?, ?)"));
    for (const auto& upload : uploads)
      PLAYFS_CHECK(known.bind(1, upload.text_hash.hex())
                       .bind(2, static_cast<std::int64_t>(upload.text_size))
                       .bind(3, upload.chunk.text())
                       .run());
    PLAYFS_TRY(auto oldest, database_.prepare("DELETE FROM known_chunks WHERE number <= "
                                              "(SELECT max(number) FROM known_chunks) - ?"));
    return oldest.bind(1, most_known_).run();
  }

  /// They are referred to no more, and sent again where this publication had uploaded them.
  Status forget_chunks(std::int64_t publication, const std::vector<LostChunk>& lost) PLAYFS_REQUIRES(mutex_) {
    if (lost.empty()) return {};
    PLAYFS_TRY(auto known, database_.prepare("DELETE FROM known_chunks WHERE chunk = ?"));
    PLAYFS_TRY(auto uploads,
               database_.prepare("UPDATE uploads SET chunk = '', key = ? WHERE publication = ? AND chunk = ?"));
    for (const auto& [chunk, fresh_key] : lost) {
      PLAYFS_CHECK(known.bind(1, chunk.text()).run());
      PLAYFS_CHECK(uploads.bind(1, fresh_key).bind(2, publication).bind(3, chunk.text()).run());
    }
    return {};
  }

  Status write_fact(const std::string& name, const std::string& value) PLAYFS_REQUIRES(mutex_) {
    if (value.empty()) {
      PLAYFS_TRY(auto remove, database_.prepare("DELETE FROM facts WHERE name = ?"));
      return remove.bind(1, name).run();
    }
    // A name keeps its number, so that those that are set again and again make none of the others old.
    PLAYFS_TRY(auto statement, database_.prepare("INSERT INTO facts(name, value) VALUES(?, ?) "
                                                 "ON CONFLICT(name) DO UPDATE SET value = excluded.value"));
    PLAYFS_CHECK(statement.bind(1, name).bind(2, value).run());
    PLAYFS_TRY(auto oldest, database_.prepare("DELETE FROM facts WHERE name LIKE 'announced/%' AND number <= "
                                              "(SELECT max(number) FROM facts) - ?"));
    return oldest.bind(1, kMostFacts).run();
  }

  Status drop_before(std::int64_t publication) PLAYFS_REQUIRES(mutex_) {
    PLAYFS_TRY(auto uploads, database_.prepare("DELETE FROM uploads WHERE publication = ?"));
    PLAYFS_CHECK(uploads.bind(1, publication).run());
    PLAYFS_TRY(auto earlier, database_.prepare("DELETE FROM publications WHERE number < ?"));
    return earlier.bind(1, publication).run();
  }

  /// They have not begun: nothing else belongs to them.
  Status drop_behind(std::int64_t publication) PLAYFS_REQUIRES(mutex_) {
    PLAYFS_TRY(auto behind, database_.prepare("DELETE FROM publications WHERE number > ?"));
    return behind.bind(1, publication).run();
  }

  Result<std::optional<Publication>> find(std::string_view condition) {
    MutexLock lock(mutex_);
    PLAYFS_TRY(auto select,
               database_.prepare(fmt::format("SELECT {} FROM publications {} LIMIT 1", kColumns, condition)));
    PLAYFS_TRY(bool found, select.step());
    if (!found) return std::optional<Publication>();
    return std::optional(read_publication(select));
  }

  const std::int64_t most_known_;
  Mutex mutex_;
  Database database_ PLAYFS_GUARDED_BY(mutex_);
  // A plan asks for thousands.
  std::optional<Statement> find_known_ PLAYFS_GUARDED_BY(mutex_);
  std::optional<Statement> find_text_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::unique_ptr<JournalStorage>> open_journal_database(const std::string& directory, std::int64_t most_known) {
  PLAYFS_CHECK(make_private_directory(directory));
  PLAYFS_TRY(auto database, Database::open(directory + "/publish.db", Database::Durability::full));
  PLAYFS_TRY(int version, schema_version(database));
  if (version > kVersion)
    return fail(ErrorCode::not_supported,
                fmt::format("{}/publish.db was written by a newer playfs (format {})", directory, version));
  PLAYFS_TRY(auto transaction, Transaction::begin(database));
  if (version == 1) PLAYFS_CHECK(database.execute(kFromVersion1));
  if (version == 1 || version == 2) PLAYFS_CHECK(database.execute(kFromVersion2));
  PLAYFS_CHECK(database.execute(kSchema));
  if (version == 1 || version == 2) PLAYFS_CHECK(database.execute(kMovedFromVersion2));
  PLAYFS_CHECK(database.execute(fmt::format("PRAGMA user_version = {}", kVersion)));
  PLAYFS_CHECK(transaction.commit());
  return std::make_unique<JournalDatabase>(std::move(database), most_known);
}

}  // namespace playfs::publish
