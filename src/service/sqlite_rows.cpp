#include "service/sqlite_rows.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/sqlite.h"
#include "service/closed_store.h"
#include "service/sqlite_schema.h"

namespace playfs::service {

namespace {

constexpr const char* kSqliteSite =
    "SELECT id, closed, (SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'records'),"
    " (SELECT COALESCE(MAX(changed), 0) FROM records WHERE changed IS NOT NULL),"
    " (SELECT created_at FROM records ORDER BY position DESC LIMIT 1) FROM site";
constexpr const char* kReplaceClosed = "UPDATE site SET closed = ?2 WHERE closed = ?1 RETURNING 1";
// AUTOINCREMENT has seen the records; the store they come from may have gone on without leaving one.
constexpr const char* kRaiseSequence = "UPDATE sqlite_sequence SET seq = MAX(seq, ?1) WHERE name = 'records'";

// A row for each write that counts; here, all of one bucket are one row.
constexpr const char* kSqliteLimits =
    "SELECT bucket, group_concat(expires) FROM (SELECT bucket, expires FROM writes WHERE bucket > ?1"
    " ORDER BY bucket, expires) GROUP BY bucket ORDER BY bucket LIMIT ?2";
constexpr const char* kRemoveWrites = "DELETE FROM writes WHERE bucket = ?1";
constexpr const char* kAddWrites =
    "INSERT INTO writes (bucket, expires) SELECT ?1, value FROM json_each('[' || ?2 || ']')";

/// "(?1, ?2)"
std::string sqlite_parameters(std::size_t count) {
  std::string list;
  for (std::size_t i = 1; i <= count; ++i) list += (i == 1 ? "(?" : ", ?") + std::to_string(i);
  return list + ")";
}

std::string sqlite_select(const StoredTable& table, bool is_first) {
  if (&table == &kLimitTable) return kSqliteLimits;
  const std::string keys = column_list(table.columns.first(table.keys));
  std::string sql = "SELECT " + column_list(table.columns) + " FROM " + table.name;
  if (!is_first) sql += " WHERE (" + keys + ") > " + sqlite_parameters(table.keys);
  return sql + " ORDER BY " + keys + " LIMIT ?" + std::to_string(table.keys + 1);
}

std::string sqlite_remove(const StoredTable& table) {
  if (&table == &kLimitTable) return kRemoveWrites;
  return std::string("DELETE FROM ") + table.name + " WHERE (" + column_list(table.columns.first(table.keys)) +
         ") = " + sqlite_parameters(table.keys);
}

std::string sqlite_add(const StoredTable& table) {
  if (&table == &kLimitTable) return kAddWrites;
  return std::string("INSERT INTO ") + table.name + " (" + column_list(table.columns) + ") VALUES " +
         sqlite_parameters(table.columns.size()) + " ON CONFLICT DO NOTHING";
}

void bind_cell(Statement& statement, int index, const StoredColumn& column, const StoredCell& cell) {
  if (const auto* number = std::get_if<std::int64_t>(&cell)) statement.bind(index, *number);
  else if (const auto* text = std::get_if<std::string>(&cell); !text) statement.bind_null(index);
  else if (column.kind == StoredColumn::Kind::bytes) statement.bind_blob(index, *text);
  else statement.bind(index, *text);
}

void bind_cells(Statement& statement, std::span<const StoredColumn> columns, const StoredRow& row) {
  for (std::size_t i = 0; i < columns.size(); ++i) bind_cell(statement, static_cast<int>(i) + 1, columns[i], row[i]);
}

StoredRow sqlite_row(const Statement& statement, std::span<const StoredColumn> columns) {
  StoredRow row(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const int index = static_cast<int>(i);
    if (statement.is_null(index)) continue;
    if (columns[i].kind == StoredColumn::Kind::integer) row[i] = statement.integer(index);
    else row[i] = std::string(statement.text(index));
  }
  return row;
}

class RowsInSqlite final : public StoredRows {
 public:
  explicit RowsInSqlite(Database database) : database_(std::move(database)) {}

  Result<StoredSite> site() override;
  Result<std::vector<StoredRow>> rows(const StoredTable& table, const StoredRow& after, std::size_t limit) override;
  Status change(const StoredTable& table, const std::vector<StoredRow>& gone,
                const std::vector<StoredRow>& added) override;
  Status set_closed(std::string_view from, std::string_view to) override;
  Status finish(const StoredSite& numbers) override;

 private:
  /// REQUIRES: inside a transaction.
  Status replace_closed(std::string_view from, std::string_view to);

  Database database_;
};

Result<StoredSite> RowsInSqlite::site() {
  PLAYFS_TRY(Statement query, database_.prepare(kSqliteSite));
  PLAYFS_TRY(bool has_row, query.step());
  if (!has_row) return fail(ErrorCode::corrupt, "the store has no site id");
  return StoredSite{std::string(query.text(0)), std::string(query.text(1)), query.integer(2), query.integer(3),
                    query.integer(4)};
}

Result<std::vector<StoredRow>> RowsInSqlite::rows(const StoredTable& table, const StoredRow& after, std::size_t limit) {
  PLAYFS_TRY(Statement query, database_.prepare(sqlite_select(table, after.empty())));
  if (after.empty()) query.bind(1, std::string_view());  // for the limits, whose statement always has it
  else bind_cells(query, table.columns.first(table.keys), after);
  query.bind(static_cast<int>(table.keys) + 1, static_cast<std::int64_t>(limit));
  std::vector<StoredRow> found;
  for (;;) {
    PLAYFS_TRY(bool has_row, query.step());
    if (!has_row) return found;
    found.push_back(sqlite_row(query, table.columns));
  }
}

Status RowsInSqlite::replace_closed(std::string_view from, std::string_view to) {
  PLAYFS_TRY(Statement set, database_.prepare(kReplaceClosed));
  PLAYFS_TRY(bool is_set, set.bind(1, from).bind(2, to).step());
  if (!is_set) return fail(changed_by_another());
  return {};
}

Status RowsInSqlite::change(const StoredTable& table, const std::vector<StoredRow>& gone,
                            const std::vector<StoredRow>& added) {
  PLAYFS_TRY(Transaction transaction, Transaction::begin(database_));
  PLAYFS_CHECK(replace_closed(kUnfinishedStore, kUnfinishedStore));
  PLAYFS_TRY(Statement remove, database_.prepare(sqlite_remove(table)));
  for (const StoredRow& row : gone) {
    bind_cells(remove, table.columns.first(table.keys), row);
    PLAYFS_CHECK(remove.run());
  }
  PLAYFS_TRY(Statement add, database_.prepare(sqlite_add(table)));
  for (const StoredRow& row : added) {
    bind_cells(add, table.columns, row);
    PLAYFS_CHECK(add.run());
  }
  return transaction.commit();
}

Status RowsInSqlite::set_closed(std::string_view from, std::string_view to) {
  PLAYFS_TRY(Transaction transaction, Transaction::begin(database_));
  PLAYFS_TRY(const StoredSite now, site());
  if (now.closed == to) return {};
  PLAYFS_CHECK(replace_closed(from, to));
  return transaction.commit();
}

Status RowsInSqlite::finish(const StoredSite& numbers) {
  PLAYFS_TRY(Transaction transaction, Transaction::begin(database_));
  PLAYFS_CHECK(replace_closed(kUnfinishedStore, kOpenStore));
  PLAYFS_TRY(Statement go_on, database_.prepare(kRaiseSequence));
  PLAYFS_CHECK(go_on.bind(1, numbers.position).run());
  return transaction.commit();
}

}  // namespace

Result<std::unique_ptr<StoredRows>> open_sqlite_rows(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0) return fail(error_from_errno(errno, path));
  PLAYFS_TRY(Database database, Database::open(path, Database::Durability::full));
  if (auto site = require_current_schema(database); !site) return fail(site.error().while_doing(path));
  return std::make_unique<RowsInSqlite>(std::move(database));
}

Result<std::unique_ptr<StoredRows>> open_sqlite_copy(const std::string& path, const std::string& site_id) {
  PLAYFS_TRY(Database database, Database::open(path, Database::Durability::full));
  auto site = require_current_schema(database);
  if (!site && site.error().code == ErrorCode::not_found)
    site = prepare_schema(database, {site_id, std::string(kUnfinishedStore)});
  if (!site) return fail(site.error().while_doing(path));
  return std::make_unique<RowsInSqlite>(std::move(database));
}

}  // namespace playfs::service
