#include "service/postgres_maintenance.h"

#include "service/closed_store.h"
#include "service/postgres_pool.h"
#include "service/postgres_schema.h"
#include "service/record_check.h"

namespace playfs::service {

namespace {

constexpr std::int64_t kAtOnce = 500;  // with the largest records, eight megabytes

constexpr const char* kNext =
    "SELECT id, collection, created_at, updated_at, fields, belongs_to, position, COALESCE(changed, 0) FROM records"
    " WHERE position > $1 ORDER BY position LIMIT $2";
constexpr const char* kSite = "SELECT position, changed, created_at FROM site";

/// The highest position, change number and time of any record.
struct Highest {
  std::int64_t position = 0;
  std::int64_t changed = 0;
  std::int64_t created_at = 0;
};

Status check_site(const PostgresRows& site, const Highest& seen) {
  if (site.count() != 1) return fail(ErrorCode::corrupt, "the store has more than one site row, or none");
  if (site.integer(0, 0) >= seen.position && site.integer(0, 1) >= seen.changed &&
      site.integer(0, 2) >= seen.created_at)
    return {};
  return fail(ErrorCode::corrupt, "the site row would give numbers again that records have");
}

}  // namespace

Result<std::uint64_t> check_postgres_store(const std::string& uri) {
  PostgresPool pool(uri, 1);
  PLAYFS_TRY(const PostgresSite store, require_postgres_schema(pool));
  PLAYFS_CHECK(require_finished(store.closed));
  Highest seen;
  for (std::uint64_t count = 0;;) {
    PLAYFS_TRY(auto rows, pool.run({kNext, Parameters().integer(seen.position).integer(kAtOnce)}));
    for (int row = 0; row < rows.count(); ++row, ++count) {
      PLAYFS_CHECK(check_record({rows.bytes(row, 0), rows.bytes(row, 1), rows.integer(row, 2), rows.integer(row, 3),
                                 rows.bytes(row, 4), rows.bytes(row, 5)},
                                seen.created_at));
      seen = {rows.integer(row, 6), std::max(seen.changed, rows.integer(row, 7)), rows.integer(row, 2)};
    }
    if (rows.count() == kAtOnce) continue;
    // Read after the records, so that it covers those added meanwhile.
    PLAYFS_TRY(auto site, pool.run({kSite}));
    PLAYFS_CHECK(check_site(site, seen));
    return count;
  }
}

}  // namespace playfs::service
