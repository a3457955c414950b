#include "service/postgres_rows.h"

#include <utility>

#include "base/callback.h"
#include "service/closed_store.h"
#include "service/postgres_pool.h"
#include "service/postgres_schema.h"
#include "service/postgres_transaction.h"
#include "service/postgres_uri.h"

namespace playfs::service {

namespace {

using Kind = StoredColumn::Kind;

constexpr const char* kPostgresSite = "SELECT id, closed, position, changed, created_at FROM site";
// All of these fail in a store that is in another state, since `id` and `closed` cannot be NULL.
constexpr const char* kSetClosed = "UPDATE site SET closed = CASE WHEN closed IN ($1, $2) THEN $2 END";
constexpr const char* kStayUnfinished = "UPDATE site SET id = CASE WHEN closed = $1 THEN id END";
constexpr const char* kFinishCopy =
    "UPDATE site SET closed = CASE WHEN closed = $1 THEN '' END, position = $2, changed = $3, created_at = $4";

// All that counts in a bucket is one row anyway, but as an array.
constexpr const char* kPostgresLimits =
    "SELECT bucket, array_to_string(expiries, ',') FROM write_limits"
    " WHERE bucket > $1 AND cardinality(expiries) > 0 ORDER BY bucket LIMIT $2";
constexpr const char* kAddBuckets = R"sql(
INSERT INTO write_limits (bucket, expiries, allowance, granted, last_hour)
SELECT bucket, expiries, 0, 0, expiries[cardinality(expiries)] / 3600000000
FROM unnest($1, $2) AS added (bucket, list), LATERAL (SELECT string_to_array(list, ',')::bigint[] AS expiries) AS parsed
ON CONFLICT DO NOTHING
)sql";

/// "($1, $2)"
std::string postgres_parameters(std::size_t count) {
  std::string list;
  for (std::size_t i = 1; i <= count; ++i) list += (i == 1 ? "($" : ", $") + std::to_string(i);
  return list + ")";
}

std::string postgres_select(const StoredTable& table, bool is_first) {
  if (&table == &kLimitTable) return kPostgresLimits;
  const std::string keys = column_list(table.columns.first(table.keys));
  std::string sql = "SELECT " + column_list(table.columns) + " FROM " + table.name;
  if (!is_first) sql += " WHERE (" + keys + ") > " + postgres_parameters(table.keys);
  return sql + " ORDER BY " + keys + " LIMIT $" + std::to_string(is_first ? 1 : table.keys + 1);
}

std::string postgres_remove(const StoredTable& table) {
  const std::string keys = column_list(table.columns.first(table.keys));
  return std::string("DELETE FROM ") + table.name + " WHERE (" + keys + ") IN (SELECT * FROM unnest" +
         postgres_parameters(table.keys) + ")";
}

std::string postgres_add(const StoredTable& table) {
  if (&table == &kLimitTable) return kAddBuckets;
  return std::string("INSERT INTO ") + table.name + " (" + column_list(table.columns) + ") SELECT * FROM unnest" +
         postgres_parameters(table.columns.size()) + " ON CONFLICT DO NOTHING";
}

Parameters postgres_cells(std::span<const StoredColumn> columns, const StoredRow& row) {
  Parameters parameters;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].kind == Kind::integer) parameters.integer(std::get<std::int64_t>(row[i]));
    else parameters.bytes(std::get<std::string>(row[i]));
  }
  return parameters;
}

/// An array for each column.
Parameters postgres_arrays(std::span<const StoredColumn> columns, const std::vector<StoredRow>& rows) {
  Parameters parameters;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::vector<std::optional<std::int64_t>> numbers;
    std::vector<std::optional<std::string_view>> texts;
    std::vector<std::string_view> words;
    for (const StoredRow& row : rows) {
      const auto* number = std::get_if<std::int64_t>(&row[i]);
      const auto* text = std::get_if<std::string>(&row[i]);
      if (columns[i].kind == Kind::integer) numbers.push_back(number ? std::optional(*number) : std::nullopt);
      else if (columns[i].kind == Kind::word) words.push_back(text ? std::string_view(*text) : std::string_view());
      else texts.push_back(text ? std::optional<std::string_view>(*text) : std::nullopt);
    }
    if (columns[i].kind == Kind::integer) parameters.integers(numbers);
    else if (columns[i].kind == Kind::word) parameters.texts(words);
    else parameters.byte_strings(texts);
  }
  return parameters;
}

StoredRow postgres_row(const PostgresRows& rows, int row, std::span<const StoredColumn> columns) {
  StoredRow cells(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const int column = static_cast<int>(i);
    if (rows.is_null(row, column)) continue;
    if (columns[i].kind == Kind::integer) cells[i] = rows.integer(row, column);
    else cells[i] = rows.string(row, column);
  }
  return cells;
}

class RowsInPostgres final : public StoredRows {
 public:
  explicit RowsInPostgres(std::unique_ptr<PostgresPool> pool) : pool_(std::move(pool)) {}

  Result<StoredSite> site() override;
  Result<std::vector<StoredRow>> rows(const StoredTable& table, const StoredRow& after, std::size_t limit) override;
  Status change(const StoredTable& table, const std::vector<StoredRow>& gone,
                const std::vector<StoredRow>& added) override;
  Status set_closed(std::string_view from, std::string_view to) override;
  Status finish(const StoredSite& numbers) override;

 private:
  /// May do it twice, if a connection is lost.
  Status commit(std::vector<PostgresStatement> statements);

  const std::unique_ptr<PostgresPool> pool_;
};

Result<StoredSite> RowsInPostgres::site() {
  PLAYFS_TRY(auto row, pool_->run({kPostgresSite}));
  if (row.empty()) return fail(ErrorCode::corrupt, "the store has no site id");
  return StoredSite{row.string(0, 0), row.string(0, 1), row.integer(0, 2), row.integer(0, 3), row.integer(0, 4)};
}

Result<std::vector<StoredRow>> RowsInPostgres::rows(const StoredTable& table, const StoredRow& after,
                                                    std::size_t limit) {
  const std::string sql = postgres_select(table, after.empty());
  Parameters parameters = postgres_cells(table.columns.first(after.size()), after);
  if (after.empty() && &table == &kLimitTable) parameters.bytes("");
  PLAYFS_TRY(auto answer, pool_->run({sql.c_str(), parameters.integer(static_cast<std::int64_t>(limit))}));
  std::vector<StoredRow> found;
  for (int row = 0; row < answer.count(); ++row) found.push_back(postgres_row(answer, row, table.columns));
  return found;
}

Status RowsInPostgres::change(const StoredTable& table, const std::vector<StoredRow>& gone,
                              const std::vector<StoredRow>& added) {
  const std::string remove = postgres_remove(table), add = postgres_add(table);
  std::vector<PostgresStatement> statements{{kStayUnfinished, Parameters().text(kUnfinishedStore)}};
  if (!gone.empty()) statements.push_back({remove.c_str(), postgres_arrays(table.columns.first(table.keys), gone)});
  if (!added.empty()) statements.push_back({add.c_str(), postgres_arrays(table.columns, added)});
  return commit(std::move(statements));
}

Status RowsInPostgres::set_closed(std::string_view from, std::string_view to) {
  return commit({set_oldest_server(to != kOpenStore), {kSetClosed, Parameters().text(from).text(to)}});
}

Status RowsInPostgres::finish(const StoredSite& numbers) {
  return commit({set_oldest_server(false),
                 {kFinishCopy, Parameters()
                                   .text(kUnfinishedStore)
                                   .integer(numbers.position)
                                   .integer(numbers.changed)
                                   .integer(numbers.created_at)}});
}

Status RowsInPostgres::commit(std::vector<PostgresStatement> statements) {
  const auto deadline = std::chrono::steady_clock::now() + kPostgresWriteLimit;
  auto done = commit_at_once(*pool_, std::move(statements), deadline);
  if (done) return {};
  // Not closed for writing, but in another state than the statement was for.
  if (done.error().remote_code == kNotNullViolation) return fail(changed_by_another());
  return fail(std::move(done).error());
}

Result<std::unique_ptr<StoredRows>> rows_over(const std::string& uri,
                                              UniqueFunction<Result<PostgresSite>(PostgresPool&)> find) {
  auto pool = std::make_unique<PostgresPool>(uri, 1);
  if (auto site = find(*pool); !site) return fail(site.error().while_doing(without_password(uri)));
  return std::make_unique<RowsInPostgres>(std::move(pool));
}

}  // namespace

Result<std::unique_ptr<StoredRows>> open_postgres_rows(const std::string& uri) {
  return rows_over(uri, require_this_postgres_schema);
}

Result<std::unique_ptr<StoredRows>> open_postgres_copy(const std::string& uri, const std::string& site_id) {
  return rows_over(uri, [&](PostgresPool& pool) {
    auto site = require_this_postgres_schema(pool);
    if (!site && site.error().code == ErrorCode::not_found)
      site = prepare_postgres_schema(pool, {site_id, std::string(kUnfinishedStore)});
    return site;
  });
}

}  // namespace playfs::service
