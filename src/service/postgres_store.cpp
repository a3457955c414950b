#include "service/postgres_store.h"

#include <utility>

#include "service/closed_store.h"
#include "service/postgres_pool.h"
#include "service/postgres_record.h"
#include "service/postgres_schema.h"
#include "service/postgres_transaction.h"
#include "service/postgres_uri.h"
#include "service/postgres_writes.h"

namespace playfs::service {

namespace {

// Connections of each playfs server. PostgreSQL's default limit is 100 in all.
constexpr std::size_t kReaders = 8;
constexpr std::size_t kWriters = 3;  // one commits groups of records; others sign in

constexpr const char* kById = "SELECT " PLAYFS_POSTGRES_RECORD " FROM records WHERE id = $1 AND collection = $2";
constexpr const char* kByRequestKey = "SELECT " PLAYFS_POSTGRES_RECORD " FROM records WHERE request_key = $1";
// With `collection = $1 ORDER BY position`, the planner may walk back over the primary key, past everything that is
// newer than an old collection's last records. These orders are had from one index only.
constexpr const char* kPage = "SELECT " PLAYFS_POSTGRES_RECORD
                              " FROM records WHERE collection = ANY (ARRAY[$1]) AND position < $2"
                              " ORDER BY collection DESC, position DESC LIMIT $3";
constexpr const char* kPageOfParts =
    "SELECT " PLAYFS_POSTGRES_RECORD
    " FROM records WHERE collection = $1 AND belongs_to >= $4 AND (belongs_to, position) < ($4, $2)"
    " ORDER BY belongs_to DESC, position DESC LIMIT $3";
constexpr const char* kNewestChange = "SELECT changed FROM site";
#define PLAYFS_POSTGRES_CHANGE "changed, collection, id, updated_at, belongs_to"
constexpr const char* kChanges =
    "SELECT " PLAYFS_POSTGRES_CHANGE " FROM records WHERE changed > $1 ORDER BY changed LIMIT $2";
constexpr const char* kLastChange =
    "SELECT " PLAYFS_POSTGRES_CHANGE " FROM records WHERE changed <= $1 ORDER BY changed DESC LIMIT 1";

// The record is locked before the site's row, as in each write. $3 is the number of changes: 1, or 0 for a file chunk.
constexpr const char* kLockRecord = "SELECT position FROM records WHERE id = $1 AND collection = $2 FOR UPDATE";
constexpr const char* kNumberChange = "UPDATE site SET changed = " PLAYFS_POSTGRES_UNLESS_CLOSED(
    "changed + $3") " WHERE EXISTS (SELECT 1 FROM records WHERE id = $1 AND collection = $2)";
constexpr const char* kSetStatus =
    "UPDATE records SET updated_at = GREATEST(records.updated_at + 1, $4), status = $5,"
    " changed = CASE WHEN $3 = 1 THEN site.changed END"
    " FROM site WHERE records.id = $1 AND records.collection = $2"
    " RETURNING records.position, records.id, records.created_at, updated_at, status, owner, fields";

constexpr std::chrono::seconds kTrialLimit{3};

Change change_of_row(const PostgresRows& rows, int row) {
  return {rows.integer(row, 0), rows.string(row, 1), rows.string(row, 2), from_column(rows.integer(row, 3)),
          rows.string(row, 4)};
}

/// Makes a page of up to `limit` rows. One row more only says that there is another page.
Page page_of(const PostgresRows& rows, std::size_t limit) {
  Page page;
  for (int row = 0; row < rows.count(); ++row) {
    if (page.records.size() == limit) {
      page.next = rows.integer(row - 1, 0);
      break;
    }
    page.records.push_back(record_of_row(rows, row));
  }
  return page;
}

Parameters page_parameters(std::string_view collection, std::size_t limit, Position before) {
  return Parameters().text(collection).integer(before).integer(static_cast<std::int64_t>(limit) + 1);
}

}  // namespace

Result<std::unique_ptr<PostgresStore>> PostgresStore::open(const std::string& uri, const Clock& clock, Random& random) {
  return open(uri, clock, random, [&random](PostgresPool& pool) {
    return prepare_postgres_schema(pool, {random.hex(16), std::string(kOpenStore)});
  });
}

Result<std::unique_ptr<PostgresStore>> PostgresStore::open_existing(const std::string& uri, const Clock& clock,
                                                                    Random& random) {
  return open(uri, clock, random, require_postgres_schema);
}

Result<std::unique_ptr<PostgresStore>> PostgresStore::open(const std::string& uri, const Clock& clock, Random& random,
                                                           UniqueFunction<Result<PostgresSite>(PostgresPool&)> find) {
  auto writers = std::make_unique<PostgresPool>(uri, kWriters);
  auto site = find(*writers);
  if (!site) return fail(site.error().while_doing(without_password(uri)));
  if (auto finished = require_finished(site->closed); !finished)
    return fail(finished.error().while_doing(without_password(uri)));
  return std::unique_ptr<PostgresStore>(new PostgresStore(uri, std::move(writers), std::move(site->id), clock, random));
}

PostgresStore::PostgresStore(const std::string& uri, std::unique_ptr<PostgresPool> writers, std::string site_id,
                             const Clock& clock, Random& random)
    : readers_(std::make_unique<PostgresPool>(uri, kReaders)),
      writers_(std::move(writers)),
      site_id_(std::move(site_id)),
      clock_(clock),
      random_(random),
      writer_(std::make_unique<PostgresWriter>(*writers_, clock, random)) {}

PostgresStore::~PostgresStore() = default;

Result<StoredRecord> PostgresStore::insert(const NewRecord& record) {
  PLAYFS_TRY(auto created, writer_->run({record.collection, record.contents, record.charge, &record}));
  if (!created) return fail(ErrorCode::internal, "an insert without a record");
  return *std::move(created);
}

Result<std::optional<StoredRecord>> PostgresStore::created_by(std::string_view request_key) {
  PLAYFS_TRY(auto rows, readers_->run({kByRequestKey, Parameters().bytes(request_key)}));
  if (rows.empty()) return std::nullopt;
  return record_of_row(rows, 0);
}

Result<StoredRecord> PostgresStore::get(std::string_view collection, std::string_view id) {
  PLAYFS_TRY(auto rows, readers_->run({kById, Parameters().bytes(id).text(collection)}));
  if (rows.empty()) return fail(ErrorCode::not_found, "there is no such record");
  return record_of_row(rows, 0);
}

Result<Page> PostgresStore::list(std::string_view collection, std::size_t limit, Position before) {
  PLAYFS_TRY(auto rows, readers_->run({kPage, page_parameters(collection, limit, before)}));
  return page_of(rows, limit);
}

Result<Page> PostgresStore::list_parts(std::string_view collection, std::string_view whole, std::size_t limit,
                                       Position before) {
  PLAYFS_TRY(auto rows, readers_->run({kPageOfParts, page_parameters(collection, limit, before).bytes(whole)}));
  return page_of(rows, limit);
}

Result<std::optional<StoredRecord>> PostgresStore::replace(std::string_view collection, const StoredRecord& read,
                                                           Contents contents, const std::optional<Charge>& charge) {
  return writer_->run({collection, contents, charge, nullptr, &read});
}

Result<StoredRecord> PostgresStore::set_status(std::string_view collection, std::string_view id,
                                               std::string_view status) {
  const auto record = Parameters().bytes(id).text(collection);
  auto numbered = record;
  numbered.integer(collection == kUnwatchedCollection ? 0 : 1);
  auto changed = numbered;
  changed.integer(to_column(clock_.wall())).text(status);
  const auto deadline = std::chrono::steady_clock::now() + kPostgresWriteLimit;
  PLAYFS_TRY(
      auto rows,
      commit_at_once(*writers_, {{kLockRecord, record}, {kNumberChange, numbered}, {kSetStatus, changed}}, deadline));
  if (rows.back().empty()) return fail(ErrorCode::not_found, "there is no such record");
  return record_of_row(rows.back(), 0);
}

Status PostgresStore::try_to_write() {
  PLAYFS_TRY(auto rows,
             commit_at_once(*writers_, {{kPostgresTouchSite}}, std::chrono::steady_clock::now() + kTrialLimit));
  return {};
}

Result<std::vector<Change>> PostgresStore::changes(Position after, std::size_t limit) {
  PLAYFS_TRY(auto rows,
             readers_->run({kChanges, Parameters().integer(after).integer(static_cast<std::int64_t>(limit))}));
  std::vector<Change> changes;
  for (int row = 0; row < rows.count(); ++row) changes.push_back(change_of_row(rows, row));
  return changes;
}

Result<std::optional<Change>> PostgresStore::last_change(Position most) {
  PLAYFS_TRY(auto rows, readers_->run({kLastChange, Parameters().integer(most)}));
  if (rows.empty()) return std::nullopt;
  return change_of_row(rows, 0);
}

Result<Position> PostgresStore::newest_change() {
  PLAYFS_TRY(auto rows, readers_->run({kNewestChange}));
  if (rows.empty()) return fail(ErrorCode::corrupt, "the store has lost its site row");
  return rows.integer(0, 0);
}

}  // namespace playfs::service
