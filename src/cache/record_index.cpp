#include "cache/record_index.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/sqlite.h"
#include "cache/checksum.h"

namespace playfs::cache {

namespace {

constexpr std::int64_t kSchemaVersion = 1;

constexpr const char* kSchema = R"sql(
CREATE TABLE records (
  site TEXT NOT NULL, collection TEXT NOT NULL, id TEXT NOT NULL,
  text TEXT NOT NULL, etag TEXT NOT NULL, fetched_at INTEGER NOT NULL, checksum INTEGER NOT NULL,
  PRIMARY KEY (site, collection, id));
CREATE TABLE contents (
  site TEXT NOT NULL, key TEXT NOT NULL, hash TEXT NOT NULL, checksum INTEGER NOT NULL,
  PRIMARY KEY (site, key)) WITHOUT ROWID;
-- position grows with newness: what is newer is added on top without touching what is there.
CREATE TABLE listed (
  site TEXT NOT NULL, collection TEXT NOT NULL, position INTEGER NOT NULL, id TEXT NOT NULL,
  created_at INTEGER NOT NULL, name TEXT NOT NULL, project TEXT NOT NULL, checksum INTEGER NOT NULL,
  PRIMARY KEY (site, collection, position)) WITHOUT ROWID;
CREATE UNIQUE INDEX listed_by_id ON listed (site, collection, id);
)sql";

/// The database with its statements, which are prepared once. One thread at a time.
struct Connection {
  Database database;
  Statement select_record, upsert_record, delete_record;
  Statement select_content, upsert_content;
  Statement select_list, top_of_list, insert_listed, clear_list;

  static Result<Connection> open(const std::string& path);
  Status prepare_all();
};

Result<std::int64_t> schema_version(Database& database) {
  PLAYFS_TRY(Statement query, database.prepare("PRAGMA user_version"));
  PLAYFS_TRY(const bool row, query.step());
  return row ? query.integer(0) : 0;
}

Status create_schema(Database& database) {
  PLAYFS_TRY(Transaction transaction, Transaction::begin(database));
  PLAYFS_TRY(const std::int64_t version, schema_version(database));
  if (version == kSchemaVersion) return {};  // another process was faster
  if (version != 0) return fail(ErrorCode::not_supported, "its schema has version " + std::to_string(version));
  PLAYFS_CHECK(database.execute(kSchema));
  PLAYFS_CHECK(database.execute("PRAGMA user_version = " + std::to_string(kSchemaVersion)));
  return transaction.commit();
}

Result<Connection> Connection::open(const std::string& path) {
  PLAYFS_TRY(Database database, Database::open(path, Database::Durability::normal));
  PLAYFS_TRY(const std::int64_t version, schema_version(database));
  if (version != kSchemaVersion) PLAYFS_CHECK(create_schema(database));
  Connection connection{std::move(database), {}, {}, {}, {}, {}, {}, {}, {}, {}};
  PLAYFS_CHECK(connection.prepare_all());
  return connection;
}

Status Connection::prepare_all() {
  const std::pair<Statement*, const char*> statements[] = {
      {&select_record,
       "SELECT text, etag, fetched_at, checksum FROM records WHERE site = ? AND collection = ? AND id = ?"},
      {&upsert_record,
       "INSERT INTO records (site, collection, id, text, etag, fetched_at, checksum) VALUES (?, ?, ?, ?, ?, ?, ?) "
       "ON CONFLICT DO UPDATE SET text = excluded.text, etag = excluded.etag, fetched_at = excluded.fetched_at, "
       "checksum = excluded.checksum"},
      {&delete_record, "DELETE FROM records WHERE site = ? AND collection = ? AND id = ?"},
      {&select_content, "SELECT hash, checksum FROM contents WHERE site = ? AND key = ?"},
      {&upsert_content,
       "INSERT INTO contents (site, key, hash, checksum) VALUES (?, ?, ?, ?) "
       "ON CONFLICT DO UPDATE SET hash = excluded.hash, checksum = excluded.checksum"},
      {&select_list,
       "SELECT id, created_at, name, project, checksum FROM listed WHERE site = ? AND collection = ? ORDER BY position "
       "DESC"},
      {&top_of_list, "SELECT coalesce(max(position), 0) FROM listed WHERE site = ? AND collection = ?"},
      {&insert_listed,
       "INSERT INTO listed (site, collection, position, id, created_at, name, project, checksum) "
       "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (site, collection, id) DO UPDATE SET "
       "created_at = excluded.created_at, name = excluded.name, project = excluded.project, checksum = "
       "excluded.checksum"},
      {&clear_list, "DELETE FROM listed WHERE site = ? AND collection = ?"}};
  for (const auto& [statement, sql] : statements) {
    PLAYFS_TRY(*statement, database.prepare(sql));
  }
  return {};
}

std::int64_t record_checksum(const std::string& site, const std::string& collection, const std::string& id,
                             std::string_view text, std::string_view etag, std::int64_t fetched_at) {
  return checksum_of_row({site, collection, id, text, etag, std::to_string(fetched_at)});
}

std::int64_t listed_checksum(const std::string& site, const std::string& collection, const ListedRecord& record) {
  return checksum_of_row(
      {site, collection, record.id, std::to_string(record.created_at.nanoseconds), record.name, record.project});
}

/// A connection that is opened when it is needed, and anew where the database is damaged or was deleted.
class Channel {
 public:
  explicit Channel(std::string directory) : directory_(std::move(directory)), path_(directory_ + "/records.db") {}

  /// Runs `work` on the connection, if one can be had.
  template <class Work>
  void attempt(Work&& work) PLAYFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (!connection_ || is_gone()) open_database();
    if (!connection_) return;
    Status done = work(*connection_);
    if (done) return;
    warn(done.error());
    if (done.error().code != ErrorCode::corrupt) return;
    connection_.reset();
    remove_database();
  }

 private:
  void open_database() PLAYFS_REQUIRES(mutex_) {
    connection_.reset();
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (auto made = make_private_directory(directory_); !made) return warn(made.error());
      auto fresh = Connection::open(path_);
      if (fresh) {
        connection_.emplace(std::move(*fresh));
        if (stat(path_.c_str(), &opened_) != 0) opened_ = {};
        return;
      }
      warn(fresh.error());
      // Busy or out of room says nothing against the file; anything else is answered by beginning anew.
      if (fresh.error().code == ErrorCode::busy || fresh.error().code == ErrorCode::no_space) return;
      remove_database();
    }
  }

  bool is_gone() const PLAYFS_REQUIRES(mutex_) {
    struct stat named {};
    return stat(path_.c_str(), &named) != 0 || named.st_ino != opened_.st_ino || named.st_dev != opened_.st_dev;
  }

  /// The log first: a new database must never meet an old one's log. Others who have it open keep what they have
  /// until they notice that it is gone.
  void remove_database() const {
    for (const char* suffix : {"-wal", "-shm", ""}) unlink((path_ + suffix).c_str());
  }

  static void warn(const Error& error) { log_warning("record index: " + error.message); }

  const std::string directory_;
  const std::string path_;
  Mutex mutex_;
  std::optional<Connection> connection_ PLAYFS_GUARDED_BY(mutex_);
  struct stat opened_ PLAYFS_GUARDED_BY(mutex_) = {};
};

}  // namespace

/// Two connections: in WAL mode readers never wait for a writer, so a lookup must not stand behind a store that
/// waits for another process.
struct RecordIndex::State {
  explicit State(const std::string& directory) : reading(directory), writing(directory) {}
  Channel reading;
  Channel writing;
};

RecordIndex::RecordIndex(std::unique_ptr<State> state) : state_(std::move(state)) {}
RecordIndex::~RecordIndex() = default;

Result<std::unique_ptr<RecordIndex>> RecordIndex::open(const std::string& directory) {
  PLAYFS_CHECK(make_private_directory(directory));
  return std::unique_ptr<RecordIndex>(new RecordIndex(std::make_unique<State>(directory)));
}

std::optional<StoredRecord> RecordIndex::record(const std::string& site, const std::string& collection,
                                                const std::string& id) {
  std::optional<StoredRecord> found;
  bool damaged = false;
  state_->reading.attempt([&](Connection& on) -> Status {
    Statement& select = on.select_record;
    PLAYFS_TRY(const bool row, select.bind(1, site).bind(2, collection).bind(3, id).step());
    if (!row) return {};
    StoredRecord record{std::string(select.text(0)), std::string(select.text(1)), WallTime{select.integer(2)}};
    damaged = select.integer(3) !=
              record_checksum(site, collection, id, record.text, record.etag, record.fetched_at.nanoseconds);
    select.reset();
    if (!damaged) found = std::move(record);
    return {};
  });
  if (damaged) forget_record(site, collection, id);
  return found;
}

void RecordIndex::store_record(const std::string& site, const std::string& collection, const std::string& id,
                               const StoredRecord& record) {
  const std::int64_t time = record.fetched_at.nanoseconds;
  const std::int64_t checksum = record_checksum(site, collection, id, record.text, record.etag, time);
  state_->writing.attempt([&](Connection& on) {
    Statement& upsert = on.upsert_record;
    upsert.bind(1, site).bind(2, collection).bind(3, id).bind(4, record.text).bind(5, record.etag);
    return upsert.bind(6, time).bind(7, checksum).run();
  });
}

void RecordIndex::forget_record(const std::string& site, const std::string& collection, const std::string& id) {
  state_->writing.attempt(
      [&](Connection& on) { return on.delete_record.bind(1, site).bind(2, collection).bind(3, id).run(); });
}

std::optional<ContentHash> RecordIndex::content_of(const std::string& site, const std::string& key) {
  std::optional<ContentHash> found;
  state_->reading.attempt([&](Connection& on) -> Status {
    Statement& select = on.select_content;
    PLAYFS_TRY(const bool row, select.bind(1, site).bind(2, key).step());
    if (!row) return {};
    if (select.integer(1) == checksum_of_row({site, key, select.text(0)})) found = ContentHash::parse(select.text(0));
    select.reset();
    return {};
  });
  return found;
}

void RecordIndex::store_content_of(const std::string& site, const std::string& key, const ContentHash& hash) {
  const std::string hex = hash.hex();
  state_->writing.attempt([&](Connection& on) {
    return on.upsert_content.bind(1, site).bind(2, key).bind(3, hex).bind(4, checksum_of_row({site, key, hex})).run();
  });
}

std::vector<ListedRecord> RecordIndex::list(const std::string& site, const std::string& collection) {
  std::vector<ListedRecord> records;
  bool complete = false, damaged = false;
  state_->reading.attempt([&](Connection& on) -> Status {
    Statement& select = on.select_list;
    select.bind(1, site).bind(2, collection);
    for (;;) {
      PLAYFS_TRY(const bool row, select.step());
      if (!row) break;
      ListedRecord record{std::string(select.text(0)), WallTime{select.integer(1)}, std::string(select.text(2)),
                          std::string(select.text(3))};
      damaged = damaged || select.integer(4) != listed_checksum(site, collection, record);
      records.push_back(std::move(record));
    }
    complete = true;
    return {};
  });
  // A list with a hole would never be completed, since its newest records are known.
  if (damaged) replace_list(site, collection, {});
  if (damaged || !complete) records.clear();
  return records;
}

namespace {
Status add_on_top(Connection& on, const std::string& site, const std::string& collection,
                  std::span<const ListedRecord> newer) {
  PLAYFS_TRY(const bool row, on.top_of_list.bind(1, site).bind(2, collection).step());
  std::int64_t position = row ? on.top_of_list.integer(0) : 0;
  on.top_of_list.reset();
  for (auto record = newer.rbegin(); record != newer.rend(); ++record) {
    Statement& insert = on.insert_listed;
    insert.bind(1, site)
        .bind(2, collection)
        .bind(3, ++position)
        .bind(4, record->id)
        .bind(5, record->created_at.nanoseconds);
    PLAYFS_CHECK(insert.bind(6, record->name)
                     .bind(7, record->project)
                     .bind(8, listed_checksum(site, collection, *record))
                     .run());
  }
  return {};
}
}  // namespace

void RecordIndex::extend_list(const std::string& site, const std::string& collection,
                              std::span<const ListedRecord> newer) {
  state_->writing.attempt([&](Connection& on) -> Status {
    PLAYFS_TRY(Transaction transaction, Transaction::begin(on.database));
    PLAYFS_CHECK(add_on_top(on, site, collection, newer));
    return transaction.commit();
  });
}

void RecordIndex::replace_list(const std::string& site, const std::string& collection,
                               std::span<const ListedRecord> records) {
  state_->writing.attempt([&](Connection& on) -> Status {
    PLAYFS_TRY(Transaction transaction, Transaction::begin(on.database));
    PLAYFS_CHECK(on.clear_list.bind(1, site).bind(2, collection).run());
    PLAYFS_CHECK(add_on_top(on, site, collection, records));
    return transaction.commit();
  });
}

}  // namespace playfs::cache
