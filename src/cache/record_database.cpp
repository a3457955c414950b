#include "cache/record_database.h"

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/fd.h"
#include "base/log.h"

namespace playfs::cache {

namespace {

constexpr std::int64_t kSchemaVersion = 5;
constexpr const char* kName = "/records.db";
/// Backoff while locked: a transaction holds the lock for a few milliseconds.
constexpr std::chrono::milliseconds kFirstWait{1}, kLongestWait{20};
/// How long a database that failed to open is not retried.
constexpr std::chrono::seconds kOpenedAgainAfter{1};

constexpr const char* kSchema = R"sql(
CREATE TABLE records (
  site TEXT NOT NULL, collection TEXT NOT NULL, id TEXT NOT NULL, used_at INTEGER NOT NULL, size INTEGER NOT NULL,
  text TEXT NOT NULL, etag TEXT NOT NULL, fetched_at INTEGER NOT NULL, checksum INTEGER NOT NULL,
  PRIMARY KEY (site, collection, id));
CREATE TABLE contents (
  site TEXT NOT NULL, key TEXT NOT NULL, hash TEXT NOT NULL, checksum INTEGER NOT NULL,
  PRIMARY KEY (site, key)) WITHOUT ROWID;
-- What stays when room is made: one record for each owner.
CREATE TABLE pins (
  owner TEXT PRIMARY KEY, site TEXT NOT NULL, collection TEXT NOT NULL, id TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX pins_by_record ON pins (site, collection, id);
)sql";

/// Made anew by this version: lists are requested again.
constexpr const char* kLists = R"sql(
DROP TABLE IF EXISTS listed;
DROP TABLE IF EXISTS whole_lists;
-- position grows with newness: what is newer is added on top without touching what is there.
CREATE TABLE listed (
  site TEXT NOT NULL, collection TEXT NOT NULL, position INTEGER NOT NULL, id TEXT NOT NULL,
  created_at INTEGER NOT NULL, name TEXT NOT NULL, project TEXT NOT NULL, kind TEXT NOT NULL,
  updated_at INTEGER NOT NULL, named_at INTEGER NOT NULL, checksum INTEGER NOT NULL,
  PRIMARY KEY (site, collection, position)) WITHOUT ROWID;
CREATE UNIQUE INDEX listed_by_id ON listed (site, collection, id);
-- A thread's messages, without looking at others.
CREATE INDEX listed_by_owner ON listed (site, collection, project, position);
-- records: how many a complete list has; -1: it is not complete. version: counts how often it was made anew, so that
-- of two processes that do so at the same time one notices. goes_on: the service has older records.
CREATE TABLE whole_lists (
  site TEXT NOT NULL, collection TEXT NOT NULL, records INTEGER NOT NULL, version INTEGER NOT NULL,
  goes_on INTEGER NOT NULL, PRIMARY KEY (site, collection)) WITHOUT ROWID;
)sql";

constexpr const char* kSelectListed =
    "SELECT id, created_at, name, project, kind, updated_at, named_at, checksum FROM listed ";

Result<std::int64_t> number_of(Database& database, const char* pragma) {
  PLAYFS_TRY(Statement query, database.prepare(pragma));
  PLAYFS_TRY(const bool row, query.step());
  return row ? query.integer(0) : 0;
}

Result<std::int64_t> schema_version(Database& database) { return number_of(database, "PRAGMA user_version"); }

Status create_schema(Database& database) {
  PLAYFS_TRY(Transaction transaction, Transaction::begin(database));
  PLAYFS_TRY(const std::int64_t version, schema_version(database));
  if (version == kSchemaVersion) return {};  // another process was faster
  if (version < 0 || version == 1 || version > kSchemaVersion)
    return fail(ErrorCode::not_supported, "its schema has version " + std::to_string(version));
  if (version == 0) PLAYFS_CHECK(database.execute(kSchema));
  PLAYFS_CHECK(database.execute(kLists));
  PLAYFS_CHECK(database.execute("PRAGMA user_version = " + std::to_string(kSchemaVersion)));
  return transaction.commit();
}

}  // namespace

Result<RecordDatabase> RecordDatabase::open(const std::string& path) {
  PLAYFS_TRY(Database database, Database::open(path, Database::Durability::none));
  PLAYFS_TRY(const std::int64_t version, schema_version(database));
  if (version != kSchemaVersion) PLAYFS_CHECK(create_schema(database));
  RecordDatabase opened(std::move(database));
  PLAYFS_CHECK(opened.prepare_all());
  return opened;
}

Result<std::uint64_t> RecordDatabase::used_bytes() {
  PLAYFS_TRY(const std::int64_t pages, number_of(database, "PRAGMA page_count"));
  PLAYFS_TRY(const std::int64_t unused, number_of(database, "PRAGMA freelist_count"));
  PLAYFS_TRY(const std::int64_t size, number_of(database, "PRAGMA page_size"));
  return static_cast<std::uint64_t>((pages - unused) * size);
}

std::string RecordDatabase::owned_query() {
  return std::string(kSelectListed) +
         "INDEXED BY listed_by_owner WHERE site = ? AND collection = ? AND project = ? ORDER BY position DESC";
}

Status RecordDatabase::prepare_all() {
  const std::string listed = kSelectListed;
  const std::pair<Statement*, std::string> statements[] = {
      {&select_record,
       "SELECT text, etag, fetched_at, checksum, used_at FROM records WHERE site = ? AND collection = ? AND id = ?"},
      {&upsert_record,
       "INSERT INTO records (site, collection, id, text, etag, fetched_at, checksum, used_at, size) "
       "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET text = excluded.text, etag = excluded.etag, "
       "fetched_at = excluded.fetched_at, checksum = excluded.checksum, used_at = excluded.used_at, "
       "size = excluded.size"},
      {&touch_record, "UPDATE records SET used_at = ? WHERE site = ? AND collection = ? AND id = ?"},
      {&delete_record, "DELETE FROM records WHERE site = ? AND collection = ? AND id = ?"},
      {&select_content, "SELECT hash, checksum FROM contents WHERE site = ? AND key = ?"},
      {&upsert_content,
       "INSERT INTO contents (site, key, hash, checksum) VALUES (?, ?, ?, ?) "
       "ON CONFLICT DO UPDATE SET hash = excluded.hash, checksum = excluded.checksum"},
      {&select_list, listed + "WHERE site = ? AND collection = ? ORDER BY position DESC"},
      {&select_owned, owned_query()},
      {&select_listed, listed + "WHERE site = ? AND collection = ? AND id = ?"},
      {&select_named, "SELECT named_at FROM listed WHERE site = ? AND collection = ? AND id = ? AND name = ?"},
      {&top_of_list, "SELECT coalesce(max(position), 0) FROM listed WHERE site = ? AND collection = ?"},
      {&insert_listed,
       "INSERT INTO listed (site, collection, position, id, created_at, name, project, kind, updated_at, named_at, "
       "checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (site, collection, id) DO UPDATE SET "
       "created_at = excluded.created_at, name = excluded.name, project = excluded.project, kind = excluded.kind, "
       "updated_at = excluded.updated_at, named_at = excluded.named_at, checksum = excluded.checksum"},
      {&clear_list, "DELETE FROM listed WHERE site = ? AND collection = ?"},
      {&select_whole, "SELECT records, version, goes_on FROM whole_lists WHERE site = ? AND collection = ?"},
      {&begin_whole,
       "INSERT INTO whole_lists (site, collection, records, version, goes_on) VALUES (?, ?, -1, 1, ?) "
       "ON CONFLICT DO UPDATE SET records = -1, version = version + 1, goes_on = excluded.goes_on"},
      {&set_whole, "UPDATE whole_lists SET records = ?3 WHERE site = ?1 AND collection = ?2"}};
  for (const auto& [statement, sql] : statements) {
    PLAYFS_TRY(*statement, database.prepare(sql));
  }
  return {};
}

RecordChannel::RecordChannel(std::string directory, std::chrono::milliseconds patience)
    : directory_(std::move(directory)), path_(directory_ + kName), patience_(patience) {}

Status RecordChannel::attempt(const std::function<Status(RecordDatabase&)>& work) {
  using SteadyClock = std::chrono::steady_clock;
  const auto end = SteadyClock::now() + patience_;
  for (auto wait = kFirstWait;; wait = std::min(2 * wait, kLongestWait)) {
    Status done = try_once(work);
    if (done) {
      is_locked_ = false;
      MutexLock lock(telling_);
      trouble_.reset();
      return done;
    }
    const bool busy = done.error().code == ErrorCode::busy;
    if (!busy || is_locked_ || SteadyClock::now() + wait > end) {
      if (busy) is_locked_ = true;
      note(done.error());
      return done;
    }
    std::this_thread::sleep_for(wait);
  }
}

Status RecordChannel::try_once(const std::function<Status(RecordDatabase&)>& work) {
  MutexLock lock(mutex_);
  if (!connection_ || is_gone()) PLAYFS_CHECK(open_database());
  Status done = work(*connection_);
  list_rows_read_ += std::exchange(connection_->list_rows_read, 0);
  if (done) return {};
  const ErrorCode code = done.error().code;
  const bool keeps = code == ErrorCode::busy || code == ErrorCode::no_space || code == ErrorCode::read_only;
  // A file truncated under an open connection looks like one without tables.
  if (!keeps) connection_.reset();
  if (code == ErrorCode::corrupt) remove_record_database(directory_);
  return done;
}

Status RecordChannel::open_database() {
  connection_.reset();
  if (unopened_ && std::chrono::steady_clock::now() < not_before_) return fail(*unopened_);
  Status failed;
  for (int attempt = 0; attempt < 2; ++attempt) {
    failed = make_private_directory(directory_);
    if (!failed) break;
    auto fresh = RecordDatabase::open(path_);
    if (fresh) {
      unopened_.reset();
      connection_.emplace(std::move(*fresh));
      if (stat(path_.c_str(), &opened_) != 0) opened_ = {};
      return {};
    }
    failed = fail(fresh.error());
    // Busy or out of space says nothing against the file; on any other error start over.
    const ErrorCode code = fresh.error().code;
    if (code == ErrorCode::busy) return failed;
    if (code == ErrorCode::no_space || code == ErrorCode::read_only) break;
    remove_record_database(directory_);
  }
  unopened_ = failed.error();
  not_before_ = std::chrono::steady_clock::now() + kOpenedAgainAfter;
  return failed;
}

bool RecordChannel::is_gone() const {
  struct stat named {};
  return stat(path_.c_str(), &named) != 0 || named.st_ino != opened_.st_ino || named.st_dev != opened_.st_dev;
}

/// Logs a repeated error once, since a full disk fails every call alike.
void RecordChannel::note(const Error& error) {
  MutexLock lock(telling_);
  const bool told = trouble_ && trouble_->message == error.message;
  trouble_ = error;
  if (!told) log_warning("record index: " + error.message);
}

std::optional<Error> RecordChannel::trouble() const {
  MutexLock lock(telling_);
  return trouble_;
}

void remove_record_database(const std::string& directory) {
  // Remove the logs first: a new database must never meet an old one's log.
  for (const char* suffix : {"-journal", "-wal", "-shm", ""}) unlink((directory + kName + suffix).c_str());
}

}  // namespace playfs::cache
