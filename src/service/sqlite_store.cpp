#include "service/sqlite_store.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "service/record_id.h"
#include "service/write_queue.h"

namespace playfs::service {

namespace {

constexpr std::int64_t kSchemaVersion = 1;

// Times are microseconds since the epoch. The table's own key is the order of all records, and the index makes a
// page of one collection cost the same wherever it lies.
constexpr const char* kSchema = R"sql(
  CREATE TABLE site (id TEXT NOT NULL);
  CREATE TABLE records (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    collection TEXT NOT NULL,
    id TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    status TEXT NOT NULL,
    owner TEXT NOT NULL,
    request_key BLOB,
    fields TEXT NOT NULL
  );
  CREATE INDEX records_of_collection ON records (collection, position);
  CREATE UNIQUE INDEX records_by_request_key ON records (request_key) WHERE request_key IS NOT NULL;
)sql";

std::int64_t microseconds(WallTime time) { return time.nanoseconds / 1000; }
WallTime from_microseconds(std::int64_t value) { return {value * 1000}; }

#define PLAYFS_RECORD_COLUMNS "position, id, created_at, updated_at, status, owner, fields"

StoredRecord record_of_row(const Statement& row) {
  return {std::string(row.text(1)), from_microseconds(row.integer(2)), from_microseconds(row.integer(3)),
          std::string(row.text(4)), std::string(row.text(5)),          std::string(row.text(6))};
}

/// Ends a query on every way out: a statement left on a row keeps its snapshot, and with it the WAL file, alive.
class ResetAtEnd {
 public:
  explicit ResetAtEnd(Statement& statement) : statement_(statement) {}
  ~ResetAtEnd() { statement_.reset(); }
  ResetAtEnd(const ResetAtEnd&) = delete;
  ResetAtEnd& operator=(const ResetAtEnd&) = delete;

 private:
  Statement& statement_;
};

/// The single row of a query, if it has one.
Result<std::optional<StoredRecord>> query_record(Statement& query) {
  ResetAtEnd reset(query);
  PLAYFS_TRY(bool row, query.step());
  if (!row) return std::nullopt;
  return record_of_row(query);
}

Result<std::string> create_or_check_schema(Database& database, Random& random) {
  PLAYFS_TRY(Transaction transaction, Transaction::begin(database));
  PLAYFS_TRY(Statement version_query, database.prepare("PRAGMA user_version"));
  PLAYFS_TRY(bool has_version, version_query.step());
  std::int64_t version = has_version ? version_query.integer(0) : 0;
  version_query.reset();
  if (version > kSchemaVersion)
    return fail(ErrorCode::not_supported, "the store was written by a newer version of playfs", "update playfs");
  if (version == 0) {
    PLAYFS_CHECK(database.execute(kSchema));
    PLAYFS_TRY(Statement name, database.prepare("INSERT INTO site (id) VALUES (?1)"));
    PLAYFS_CHECK(name.bind(1, random.hex(16)).run());
    PLAYFS_CHECK(database.execute("PRAGMA user_version = " + std::to_string(kSchemaVersion)));
  }
  PLAYFS_TRY(Statement site, database.prepare("SELECT id FROM site"));
  PLAYFS_TRY(bool has_site, site.step());
  if (!has_site) return fail(ErrorCode::corrupt, "the store has no site id");
  std::string site_id(site.text(0));
  site.reset();
  PLAYFS_CHECK(transaction.commit());
  return site_id;
}

}  // namespace

struct SqliteStore::Reader {
  Database database;
  Statement get;
  Statement list;

  static Result<std::unique_ptr<Reader>> open(const std::string& path) {
    PLAYFS_TRY(Database database, Database::open(path, Database::Durability::normal));
    auto reader = std::make_unique<Reader>(Reader{std::move(database), {}, {}});
    PLAYFS_TRY(reader->get, reader->database.prepare("SELECT " PLAYFS_RECORD_COLUMNS
                                                     " FROM records WHERE id = ?1 AND collection = ?2"));
    PLAYFS_TRY(reader->list, reader->database.prepare("SELECT " PLAYFS_RECORD_COLUMNS
                                                      " FROM records WHERE collection = ?1 AND position < ?2"
                                                      " ORDER BY position DESC LIMIT ?3"));
    return reader;
  }
};

/// Reading connections, lent to one thread at a time. As many are opened as threads read at once.
class SqliteStore::Readers {
 public:
  explicit Readers(std::string path) : path_(std::move(path)) {}

  class Loan {
   public:
    Loan(Readers& owner, std::unique_ptr<Reader> reader) : owner_(&owner), reader_(std::move(reader)) {}
    Loan(Loan&& other) noexcept = default;
    Loan& operator=(Loan&&) = delete;
    ~Loan() {
      if (!reader_) return;
      MutexLock lock(owner_->mutex_);
      owner_->free_.push_back(std::move(reader_));
    }
    Reader* operator->() { return reader_.get(); }

   private:
    Readers* owner_;
    std::unique_ptr<Reader> reader_;
  };

  Result<Loan> borrow() {
    std::unique_ptr<Reader> reader;
    {
      MutexLock lock(mutex_);
      if (!free_.empty()) {
        reader = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (!reader) {
      PLAYFS_TRY(reader, Reader::open(path_));
    }
    return Loan(*this, std::move(reader));
  }

 private:
  const std::string path_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Reader>> free_ PLAYFS_GUARDED_BY(mutex_);
};

/// The writing connection; all but `queue` is used inside a write of the queue only.
struct SqliteStore::Writer {
  Writer(Database opened, const Clock& clock_, Random& random_)
      : database(std::move(opened)), queue(database), clock(clock_), random(random_) {}

  Database database;
  WriteQueue queue;
  const Clock& clock;
  Random& random;
  Statement by_request_key;
  Statement by_id;
  Statement newest;
  Statement insert;
  Statement update;

  Status prepare() {
    PLAYFS_TRY(by_request_key,
               database.prepare("SELECT " PLAYFS_RECORD_COLUMNS " FROM records WHERE request_key = ?1"));
    PLAYFS_TRY(by_id,
               database.prepare("SELECT " PLAYFS_RECORD_COLUMNS " FROM records WHERE id = ?1 AND collection = ?2"));
    PLAYFS_TRY(newest, database.prepare("SELECT created_at FROM records ORDER BY position DESC LIMIT 1"));
    PLAYFS_TRY(insert, database.prepare("INSERT INTO records (collection, id, created_at, updated_at, status, owner,"
                                        " request_key, fields) VALUES (?1, ?2, ?3, ?3, ?4, ?5, ?6, ?7)"));
    PLAYFS_TRY(update, database.prepare("UPDATE records SET updated_at = ?2, fields = ?3 WHERE id = ?1"));
    return {};
  }

  /// Now, but later than every record there is: another process, or this one before the clock was set back, may
  /// have been ahead.
  Result<WallTime> next_creation_time() {
    ResetAtEnd reset(newest);
    PLAYFS_TRY(bool row, newest.step());
    std::int64_t now = microseconds(clock.wall());
    return from_microseconds(row ? std::max(now, newest.integer(0) + 1) : now);
  }

  Result<StoredRecord> insert_record(const NewRecord& record) {
    if (!record.request_key.empty()) {
      PLAYFS_TRY(auto original, query_record(by_request_key.bind_blob(1, record.request_key)));
      if (original) return *std::move(original);
    }
    PLAYFS_TRY(WallTime now, next_creation_time());
    StoredRecord created{make_record_id(now, random), now, now, kInitialStatus, record.owner, record.fields};
    insert.bind(1, record.collection).bind(2, created.id).bind(3, microseconds(now)).bind(4, created.status);
    insert.bind(5, created.owner).bind(7, created.fields);
    if (record.request_key.empty()) insert.bind_null(6);
    else insert.bind_blob(6, record.request_key);
    PLAYFS_CHECK(insert.run());
    return created;
  }

  Result<std::optional<StoredRecord>> replace_fields(std::string_view collection, const StoredRecord& read,
                                                     std::string fields) {
    PLAYFS_TRY(auto current, query_record(by_id.bind(1, read.id).bind(2, collection)));
    if (!current) return fail(ErrorCode::not_found, "there is no such record");
    if (current->updated_at != read.updated_at) return std::nullopt;
    std::int64_t now = std::max(microseconds(clock.wall()), microseconds(current->updated_at) + 1);
    PLAYFS_CHECK(update.bind(1, read.id).bind(2, now).bind(3, fields).run());
    current->updated_at = from_microseconds(now);
    current->fields = std::move(fields);
    return current;
  }
};

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const std::string& path, Database::Durability durability,
                                                       const Clock& clock, Random& random) {
  PLAYFS_TRY(Database database, Database::open(path, durability));
  auto site_id = create_or_check_schema(database, random);
  if (!site_id) return fail(site_id.error().while_doing(path));
  auto writer = std::make_unique<Writer>(std::move(database), clock, random);
  PLAYFS_CHECK(writer->prepare());
  return std::unique_ptr<SqliteStore>(
      new SqliteStore(std::make_unique<Readers>(path), std::move(writer), *std::move(site_id)));
}

SqliteStore::SqliteStore(std::unique_ptr<Readers> readers, std::unique_ptr<Writer> writer, std::string site_id)
    : readers_(std::move(readers)), writer_(std::move(writer)), site_id_(std::move(site_id)) {}

SqliteStore::~SqliteStore() = default;

Result<StoredRecord> SqliteStore::insert(const NewRecord& record) {
  StoredRecord created;
  PLAYFS_CHECK(writer_->queue.run([&]() -> Status {
    PLAYFS_TRY(created, writer_->insert_record(record));
    return {};
  }));
  return created;
}

Result<StoredRecord> SqliteStore::get(std::string_view collection, std::string_view id) {
  PLAYFS_TRY(auto reader, readers_->borrow());
  PLAYFS_TRY(auto record, query_record(reader->get.bind(1, id).bind(2, collection)));
  if (!record) return fail(ErrorCode::not_found, "there is no such record");
  return *std::move(record);
}

Result<Page> SqliteStore::list(std::string_view collection, std::size_t limit, Position before) {
  PLAYFS_TRY(auto reader, readers_->borrow());
  ResetAtEnd reset(reader->list);
  // One more than asked for, to know whether there is another page.
  reader->list.bind(1, collection).bind(2, before).bind(3, static_cast<std::int64_t>(limit) + 1);
  Page page;
  Position last = before;
  for (;;) {
    PLAYFS_TRY(bool row, reader->list.step());
    if (!row) return page;
    if (page.records.size() == limit) break;
    page.records.push_back(record_of_row(reader->list));
    last = reader->list.integer(0);
  }
  page.next = last;
  return page;
}

Result<std::optional<StoredRecord>> SqliteStore::replace(std::string_view collection, const StoredRecord& read,
                                                         std::string fields) {
  std::optional<StoredRecord> replaced;
  PLAYFS_CHECK(writer_->queue.run([&]() -> Status {
    PLAYFS_TRY(replaced, writer_->replace_fields(collection, read, std::move(fields)));
    return {};
  }));
  return replaced;
}

const std::string& SqliteStore::site_id() const { return site_id_; }

}  // namespace playfs::service
