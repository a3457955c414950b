#include "service/sqlite_store.h"

#include <algorithm>
#include <utility>

#include "service/closed_store.h"
#include "service/record_id.h"
#include "service/sqlite_connections.h"
#include "service/sqlite_limits.h"
#include "service/sqlite_schema.h"
#include "service/stored_time.h"

namespace playfs::service {

namespace {

#define PLAYFS_RECORD_COLUMNS "position, id, created_at, updated_at, status, owner, fields"

constexpr std::string_view kById = "SELECT " PLAYFS_RECORD_COLUMNS " FROM records WHERE id = ?1 AND collection = ?2";
constexpr std::string_view kByRequestKey = "SELECT " PLAYFS_RECORD_COLUMNS " FROM records WHERE request_key = ?1";
constexpr std::string_view kPageQuery =
    "SELECT " PLAYFS_RECORD_COLUMNS
    " FROM records WHERE collection = ?1 AND position < ?2 ORDER BY position DESC LIMIT ?3";
constexpr std::string_view kPageOfParts =
    "SELECT " PLAYFS_RECORD_COLUMNS
    " FROM records WHERE collection = ?1 AND belongs_to = ?4 AND position < ?2 ORDER BY position DESC LIMIT ?3";
constexpr std::string_view kNewestTime = "SELECT created_at FROM records ORDER BY position DESC LIMIT 1";
constexpr std::string_view kInsert =
    "INSERT INTO records"
    " (collection, id, created_at, updated_at, status, owner, request_key, fields, belongs_to, changed)"
    " VALUES (?1, ?2, ?3, ?3, ?4, ?5, ?6, ?7, NULLIF(?8, ''), ?9)";
constexpr std::string_view kUpdate =
    "UPDATE records SET updated_at = ?2, fields = ?3, belongs_to = NULLIF(?4, ''), changed = ?5 WHERE id = ?1";
constexpr std::string_view kSetStatus = "UPDATE records SET updated_at = ?2, status = ?3, changed = ?4 WHERE id = ?1";
// Rewrites a row, so that the transaction reaches the disk.
constexpr std::string_view kTryToWrite = "UPDATE site SET id = id";
// The next number is one more than the highest. Records are never deleted, and one that changes gets a higher number,
// so the highest never becomes lower.
constexpr std::string_view kNewestChange =
    "SELECT changed FROM records WHERE changed IS NOT NULL ORDER BY changed DESC LIMIT 1";
#define PLAYFS_CHANGE_COLUMNS "changed, collection, id, updated_at, belongs_to"
constexpr std::string_view kChanges =
    "SELECT " PLAYFS_CHANGE_COLUMNS " FROM records WHERE changed > ?1 ORDER BY changed LIMIT ?2";
constexpr std::string_view kLastChange =
    "SELECT " PLAYFS_CHANGE_COLUMNS " FROM records WHERE changed <= ?1 ORDER BY changed DESC LIMIT 1";

StoredRecord record_of_row(const Statement& row) {
  return {std::string(row.text(1)), from_column(row.integer(2)), from_column(row.integer(3)),
          std::string(row.text(4)), std::string(row.text(5)),    std::string(row.text(6))};
}

Change change_of_row(const Statement& row) {
  return {row.integer(0), std::string(row.text(1)), std::string(row.text(2)), from_column(row.integer(3)),
          std::string(row.text(4))};
}

Result<std::optional<StoredRecord>> single_record(Statement& query) {
  PLAYFS_TRY(bool row, query.step());
  if (!row) return std::nullopt;
  return record_of_row(query);
}

Result<std::optional<StoredRecord>> record_by_id(Connection& connection, std::string_view collection,
                                                 std::string_view id) {
  PLAYFS_TRY(auto query, connection.use(kById));
  return single_record(query->bind(1, id).bind(2, collection));
}

Result<std::optional<StoredRecord>> record_by_request_key(Connection& connection, std::string_view key) {
  PLAYFS_TRY(auto query, connection.use(kByRequestKey));
  return single_record(query->bind_blob(1, key));
}

/// Now, or just after the newest record: other processes, or this one before the clock was set back, may be ahead.
Result<WallTime> next_creation_time(Connection& connection, WallTime now) {
  PLAYFS_TRY(auto query, connection.use(kNewestTime));
  PLAYFS_TRY(bool row, query->step());
  return from_column(row ? std::max(to_column(now), query->integer(0) + 1) : to_column(now));
}

Result<Position> number_of_newest_change(Connection& connection) {
  PLAYFS_TRY(auto query, connection.use(kNewestChange));
  PLAYFS_TRY(bool row, query->step());
  return row ? query->integer(0) : 0;
}

/// Gives a write of that collection the next number, as parameter `index`.
Status bind_change(Connection& connection, std::string_view collection, Statement& write, int index) {
  if (collection == kUnwatchedCollection) {
    write.bind_null(index);
    return {};
  }
  PLAYFS_TRY(Position newest, number_of_newest_change(connection));
  write.bind(index, newest + 1);
  return {};
}

Result<StoredRecord> insert_record(Connection& connection, const NewRecord& record, WallTime now, Random& random) {
  if (!record.request_key.empty()) {
    PLAYFS_TRY(auto original, record_by_request_key(connection, record.request_key));
    if (original) return *std::move(original);
  }
  if (record.charge) PLAYFS_CHECK(charge_write(connection, *record.charge, now));
  PLAYFS_TRY(WallTime time, next_creation_time(connection, now));
  StoredRecord created{make_record_id(time, random), time, time, kInitialStatus, record.owner, record.contents.fields};
  PLAYFS_TRY(auto insert, connection.use(kInsert));
  insert->bind(1, record.collection).bind(2, created.id).bind(3, to_column(time)).bind(4, created.status);
  insert->bind(5, created.owner).bind(7, created.fields).bind(8, record.contents.belongs_to);
  if (record.request_key.empty()) insert->bind_null(6);
  else insert->bind_blob(6, record.request_key);
  PLAYFS_CHECK(bind_change(connection, record.collection, *insert, 9));
  PLAYFS_CHECK(insert->run());
  return created;
}

Result<std::optional<StoredRecord>> replace_contents(Connection& connection, std::string_view collection,
                                                     const StoredRecord& read, Contents contents,
                                                     const std::optional<Charge>& charge, WallTime now) {
  PLAYFS_TRY(auto current, record_by_id(connection, collection, read.id));
  if (!current) return fail(ErrorCode::not_found, "there is no such record");
  if (current->updated_at != read.updated_at) return std::nullopt;
  if (charge) PLAYFS_CHECK(charge_write(connection, *charge, now));
  std::int64_t time = std::max(to_column(now), to_column(current->updated_at) + 1);
  PLAYFS_TRY(auto update, connection.use(kUpdate));
  update->bind(1, read.id).bind(2, time).bind(3, contents.fields).bind(4, contents.belongs_to);
  PLAYFS_CHECK(bind_change(connection, collection, *update, 5));
  PLAYFS_CHECK(update->run());
  current->updated_at = from_column(time);
  current->fields = std::move(contents.fields);
  return current;
}

Result<StoredRecord> replace_status(Connection& connection, std::string_view collection, std::string_view id,
                                    std::string_view status, WallTime now) {
  PLAYFS_TRY(auto record, record_by_id(connection, collection, id));
  if (!record) return fail(ErrorCode::not_found, "there is no such record");
  record->updated_at = from_column(std::max(to_column(now), to_column(record->updated_at) + 1));
  record->status = status;
  PLAYFS_TRY(auto update, connection.use(kSetStatus));
  update->bind(1, id).bind(2, to_column(record->updated_at)).bind(3, status);
  PLAYFS_CHECK(bind_change(connection, collection, *update, 4));
  PLAYFS_CHECK(update->run());
  return *std::move(record);
}

/// Reads a page from a query whose parameters 2 and 3 are its start and its number of rows.
Result<Page> read_page(Statement& query, std::size_t limit, Position before) {
  // One more than requested, to know whether there is another page.
  query.bind(2, before).bind(3, static_cast<std::int64_t>(limit) + 1);
  Page page;
  Position last = before;
  for (;;) {
    PLAYFS_TRY(bool row, query.step());
    if (!row) return page;
    if (page.records.size() == limit) break;
    page.records.push_back(record_of_row(query));
    last = query.integer(0);
  }
  page.next = last;
  return page;
}

}  // namespace

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const std::string& path, Database::Durability durability,
                                                       const Clock& clock, Random& random) {
  PLAYFS_TRY(Database database, Database::open(path, durability));
  auto site = prepare_schema(database, {random.hex(16), std::string(kOpenStore)});
  if (!site) return fail(site.error().while_doing(path));
  if (auto finished = require_finished(site->closed); !finished) return fail(finished.error().while_doing(path));
  PLAYFS_TRY(auto connections, Connections::open(path, durability));
  return std::unique_ptr<SqliteStore>(new SqliteStore(std::move(connections), std::move(site->id), clock, random));
}

SqliteStore::SqliteStore(std::unique_ptr<Connections> connections, std::string site_id, const Clock& clock,
                         Random& random)
    : connections_(std::move(connections)), site_id_(std::move(site_id)), clock_(clock), random_(random) {}

SqliteStore::~SqliteStore() = default;

Result<StoredRecord> SqliteStore::insert(const NewRecord& record) {
  StoredRecord created;
  PLAYFS_CHECK(connections_->write([&](Connection& connection) -> Status {
    PLAYFS_TRY(created, insert_record(connection, record, clock_.wall(), random_));
    return {};
  }));
  return created;
}

Result<std::optional<StoredRecord>> SqliteStore::created_by(std::string_view request_key) {
  PLAYFS_TRY(auto connection, connections_->read());
  return record_by_request_key(*connection, request_key);
}

Result<StoredRecord> SqliteStore::get(std::string_view collection, std::string_view id) {
  PLAYFS_TRY(auto connection, connections_->read());
  PLAYFS_TRY(auto record, record_by_id(*connection, collection, id));
  if (!record) return fail(ErrorCode::not_found, "there is no such record");
  return *std::move(record);
}

Result<Page> SqliteStore::list(std::string_view collection, std::size_t limit, Position before) {
  PLAYFS_TRY(auto connection, connections_->read());
  PLAYFS_TRY(auto query, connection->use(kPageQuery));
  return read_page(query->bind(1, collection), limit, before);
}

Result<Page> SqliteStore::list_parts(std::string_view collection, std::string_view whole, std::size_t limit,
                                     Position before) {
  PLAYFS_TRY(auto connection, connections_->read());
  PLAYFS_TRY(auto query, connection->use(kPageOfParts));
  return read_page(query->bind(1, collection).bind(4, whole), limit, before);
}

Result<std::optional<StoredRecord>> SqliteStore::replace(std::string_view collection, const StoredRecord& read,
                                                         Contents contents, const std::optional<Charge>& charge) {
  std::optional<StoredRecord> replaced;
  PLAYFS_CHECK(connections_->write([&](Connection& connection) -> Status {
    PLAYFS_TRY(replaced, replace_contents(connection, collection, read, std::move(contents), charge, clock_.wall()));
    return {};
  }));
  return replaced;
}

Result<StoredRecord> SqliteStore::set_status(std::string_view collection, std::string_view id,
                                             std::string_view status) {
  StoredRecord changed;
  PLAYFS_CHECK(connections_->write([&](Connection& connection) -> Status {
    PLAYFS_TRY(changed, replace_status(connection, collection, id, status, clock_.wall()));
    return {};
  }));
  return changed;
}

Status SqliteStore::try_to_write() {
  return connections_->write([](Connection& connection) -> Status {
    PLAYFS_TRY(auto touch, connection.use(kTryToWrite));
    return touch->run();
  });
}

Result<std::vector<Change>> SqliteStore::changes(Position after, std::size_t limit) {
  PLAYFS_TRY(auto connection, connections_->read());
  PLAYFS_TRY(auto query, connection->use(kChanges));
  query->bind(1, after).bind(2, static_cast<std::int64_t>(limit));
  std::vector<Change> changes;
  for (;;) {
    PLAYFS_TRY(bool row, query->step());
    if (!row) return changes;
    changes.push_back(change_of_row(*query));
  }
}

Result<std::optional<Change>> SqliteStore::last_change(Position most) {
  PLAYFS_TRY(auto connection, connections_->read());
  PLAYFS_TRY(auto query, connection->use(kLastChange));
  PLAYFS_TRY(const bool row, query->bind(1, most).step());
  if (!row) return std::nullopt;
  return change_of_row(*query);
}

Result<Position> SqliteStore::newest_change() {
  PLAYFS_TRY(auto connection, connections_->read());
  return number_of_newest_change(*connection);
}

}  // namespace playfs::service
