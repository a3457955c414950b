#include "publish/journal.h"

#include <fmt/format.h>

#include "base/fd.h"

namespace playfs::publish {

namespace {

constexpr int kVersion = 1;

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
  PRIMARY KEY(publication, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS known_chunks(text_hash TEXT PRIMARY KEY, text_size INTEGER NOT NULL, chunk TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facts(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
)";

constexpr const char* kColumns =
    "number, tx, agent, message, step, base, files_changed, key, body, revision, chunks, writes, ending, error_code, "
    "error_message, error_hint";

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
  return publication;
}

Result<int> schema_version(Database& database) {
  PLAYFS_TRY(auto statement, database.prepare("PRAGMA user_version"));
  PLAYFS_CHECK(statement.step());
  return static_cast<int>(statement.integer(0));
}

Status set_branch(Database& database, const Publication& publication) {
  if (publication.ending == Ending::published) return database.execute("DELETE FROM facts WHERE name = 'branch'");
  PLAYFS_TRY(auto statement, database.prepare("INSERT OR REPLACE INTO facts(name, value) VALUES('branch', ?)"));
  return statement.bind(1, publication.revision.text()).run();
}

}  // namespace

Result<std::unique_ptr<Journal>> Journal::open(const std::string& directory, JournalProbe probe) {
  PLAYFS_CHECK(make_private_directory(directory));
  PLAYFS_TRY(auto database, Database::open(directory + "/publish.db", Database::Durability::full));
  PLAYFS_TRY(int version, schema_version(database));
  if (version > kVersion)
    return fail(ErrorCode::not_supported,
                fmt::format("{}/publish.db was written by a newer playfs (format {})", directory, version));
  PLAYFS_TRY(auto transaction, Transaction::begin(database));
  PLAYFS_CHECK(database.execute(kSchema));
  PLAYFS_CHECK(database.execute(fmt::format("PRAGMA user_version = {}", kVersion)));
  PLAYFS_CHECK(transaction.commit());
  return std::unique_ptr<Journal>(new Journal(std::move(database), std::move(probe)));
}

Status Journal::write(std::string_view what, const std::function<Status(Database&)>& change) {
  if (probe_) probe_(what, false);
  {
    MutexLock lock(mutex_);
    PLAYFS_TRY(auto transaction, Transaction::begin(database_));
    PLAYFS_CHECK(change(database_));
    PLAYFS_CHECK(transaction.commit());
  }
  if (probe_) probe_(what, true);
  return {};
}

Status Journal::store(std::string_view what, const Publication& publication,
                      const std::function<Status(Database&)>& more) {
  return write(what, [&](Database& database) -> Status {
    PLAYFS_TRY(auto update,
               database.prepare("UPDATE publications SET step = ?, base = ?, files_changed = ?, key = ?, "
                                "body = ?, revision = ?, chunks = ?, writes = ?, ending = ?, error_code = ?, "
                                "error_message = ?, error_hint = ? WHERE number = ?"));
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
                     .bind(13, publication.number)
                     .run());
    if (database.rows_changed() != 1) return fail(ErrorCode::internal, "the journal has lost a publication");
    return more ? more(database) : Status();
  });
}

Status Journal::enqueue(const std::string& tx, const std::string& agent, const std::string& message) {
  return write("enqueue", [&](Database& database) -> Status {
    PLAYFS_TRY(auto insert, database.prepare("INSERT INTO publications(tx, agent, message, step) VALUES(?, ?, ?, ?)"));
    return insert.bind(1, tx).bind(2, agent).bind(3, message).bind(4, static_cast<std::int64_t>(Step::queued)).run();
  });
}

Result<std::optional<Publication>> Journal::find(std::string_view condition) {
  MutexLock lock(mutex_);
  PLAYFS_TRY(auto select,
             database_.prepare(fmt::format("SELECT {} FROM publications {} LIMIT 1", kColumns, condition)));
  PLAYFS_TRY(bool found, select.step());
  if (!found) return std::optional<Publication>();
  return std::optional(read_publication(select));
}

Result<std::optional<Publication>> Journal::front() {
  return find(fmt::format("WHERE step <> {} ORDER BY number", static_cast<int>(Step::ended)));
}

Result<std::optional<Publication>> Journal::last() {
  return find(fmt::format("WHERE step = {} ORDER BY number DESC", static_cast<int>(Step::ended)));
}

// A publication's value changes only once its row has: a change that failed is done over by whoever does the step
// again.

Status Journal::record_frozen(Publication& publication, RevisionId base, std::uint32_t files_changed) {
  Publication next = publication;
  next.step = Step::frozen;
  next.base = std::move(base);
  next.files_changed = files_changed;
  PLAYFS_CHECK(store("frozen", next));
  publication = std::move(next);
  return {};
}

Status Journal::record_uploads(Publication& publication, const std::vector<Upload>& uploads) {
  Publication next = publication;
  next.step = Step::uploading;
  next.chunks += static_cast<std::uint32_t>(uploads.size());
  PLAYFS_CHECK(store("uploads", next, [&](Database& database) -> Status {
    PLAYFS_TRY(auto insert,
               database.prepare("INSERT INTO uploads(publication, number, key, body, text_hash, text_size) "
                                "VALUES(?, ?, ?, ?, ?, ?)"));
    for (const auto& upload : uploads)
      PLAYFS_CHECK(insert.bind(1, next.number)
                       .bind(2, upload.number)
                       .bind(3, upload.key)
                       .bind(4, upload.body)
                       .bind(5, upload.text_hash.hex())
                       .bind(6, static_cast<std::int64_t>(upload.text_size))
                       .run());
    return {};
  }));
  publication = std::move(next);
  return {};
}

Result<std::vector<Upload>> Journal::uploads(const Publication& publication) {
  MutexLock lock(mutex_);
  PLAYFS_TRY(auto select, database_.prepare("SELECT number, key, body, text_hash, text_size, chunk FROM uploads "
                                            "WHERE publication = ? ORDER BY number"));
  select.bind(1, publication.number);
  std::vector<Upload> uploads;
  for (;;) {
    PLAYFS_TRY(bool found, select.step());
    if (!found) return uploads;
    auto hash = ContentHash::parse(select.text(3));
    if (!hash) return fail(ErrorCode::corrupt, "the journal has an upload without a hash");
    uploads.push_back({select.integer(0), std::string(select.text(1)), std::string(select.text(2)), *hash,
                       static_cast<std::uint64_t>(select.integer(4)), ChunkId(std::string(select.text(5)))});
  }
}

Status Journal::record_acknowledged(Publication& publication, const std::vector<Upload>& uploads) {
  Publication next = publication;
  next.writes += static_cast<std::uint32_t>(uploads.size());
  PLAYFS_CHECK(store("acknowledged", next, [&](Database& database) -> Status {
    PLAYFS_TRY(auto update, database.prepare("UPDATE uploads SET chunk = ? WHERE publication = ? AND number = ?"));
    PLAYFS_TRY(auto known,
               database.prepare("INSERT OR REPLACE INTO known_chunks(text_hash, text_size, chunk) VALUES(?, ?, ?)"));
    for (const auto& upload : uploads) {
      PLAYFS_CHECK(update.bind(1, upload.chunk.text()).bind(2, next.number).bind(3, upload.number).run());
      PLAYFS_CHECK(known.bind(1, upload.text_hash.hex())
                       .bind(2, static_cast<std::int64_t>(upload.text_size))
                       .bind(3, upload.chunk.text())
                       .run());
    }
    return {};
  }));
  publication = std::move(next);
  return {};
}

Status Journal::record_posting(Publication& publication, std::string key, std::string body) {
  Publication next = publication;
  next.step = Step::posting;
  next.key = std::move(key);
  next.body = std::move(body);
  PLAYFS_CHECK(store("posting", next));
  publication = std::move(next);
  return {};
}

Status Journal::record_posted(Publication& publication, RevisionId revision) {
  Publication next = publication;
  next.step = Step::posted;
  next.revision = std::move(revision);
  ++next.writes;
  PLAYFS_CHECK(store("posted", next));
  publication = std::move(next);
  return {};
}

Status Journal::record_patching(Publication& publication) {
  Publication next = publication;
  next.step = Step::patching;
  ++next.writes;
  PLAYFS_CHECK(store("patching", next));
  publication = std::move(next);
  return {};
}

Status Journal::record_settling(Publication& publication, Ending ending) {
  Publication next = publication;
  next.step = Step::settling;
  next.ending = ending;
  // With the outcome, so that whoever sees the stage on its new base also sees that it stands on a branch.
  PLAYFS_CHECK(store("settling", next, [&](Database& database) { return set_branch(database, next); }));
  publication = std::move(next);
  return {};
}

Status Journal::record_thawing(Publication& publication, const Error& error) {
  Publication next = publication;
  next.step = Step::thawing;
  next.ending = Ending::failed;
  next.error_code = name_of(error.code);
  next.error_message = error.message;
  next.error_hint = error.hint;
  PLAYFS_CHECK(store("thawing", next));
  publication = std::move(next);
  return {};
}

Status Journal::record_ended(Publication& publication) {
  Publication next = publication;
  next.step = Step::ended;
  next.body.clear();
  PLAYFS_CHECK(store("ended", next, [&](Database& database) -> Status {
    PLAYFS_TRY(auto uploads, database.prepare("DELETE FROM uploads WHERE publication = ?"));
    PLAYFS_CHECK(uploads.bind(1, next.number).run());
    PLAYFS_TRY(auto earlier, database.prepare("DELETE FROM publications WHERE number < ?"));
    return earlier.bind(1, next.number).run();
  }));
  publication = std::move(next);
  return {};
}

Result<std::unordered_map<ContentHash, KnownChunk>> Journal::known_chunks() {
  MutexLock lock(mutex_);
  PLAYFS_TRY(auto select, database_.prepare("SELECT text_hash, text_size, chunk FROM known_chunks"));
  std::unordered_map<ContentHash, KnownChunk> known;
  for (;;) {
    PLAYFS_TRY(bool found, select.step());
    if (!found) return known;
    if (auto hash = ContentHash::parse(select.text(0)))
      known[*hash] = {ChunkId(std::string(select.text(2))), static_cast<std::uint64_t>(select.integer(1))};
  }
}

Result<RevisionId> Journal::branch() {
  MutexLock lock(mutex_);
  PLAYFS_TRY(auto select, database_.prepare("SELECT value FROM facts WHERE name = 'branch'"));
  PLAYFS_TRY(bool found, select.step());
  return found ? RevisionId(std::string(select.text(0))) : RevisionId();
}

}  // namespace playfs::publish
