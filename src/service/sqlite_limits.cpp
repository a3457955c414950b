#include "service/sqlite_limits.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "service/charges.h"
#include "service/stored_time.h"

namespace playfs::service {

namespace {
// Rows that expire later than a full window from now were written before the clock was set back.
constexpr std::string_view kForget = "DELETE FROM writes WHERE bucket = ?1 AND (expires <= ?2 OR expires > ?3)";
// Other clients' expired rows are removed a few at a time, so that no single write pays for all of them.
constexpr std::string_view kSweep =
    "DELETE FROM writes WHERE rowid IN (SELECT rowid FROM writes WHERE expires <= ?1 ORDER BY expires LIMIT 4)";
// The write whose expiry makes room for the next one.
constexpr std::string_view kInTheWay =
    "SELECT expires FROM writes WHERE bucket = ?1 ORDER BY expires DESC LIMIT 1 OFFSET ?2";
constexpr std::string_view kCount = "INSERT INTO writes (bucket, expires) VALUES (?1, ?2)";
}  // namespace

Status charge_write(Connection& connection, const Charge& charge, WallTime now) {
  const std::int64_t time = to_column(now);
  const std::int64_t expiry = time + to_microseconds(charge.window);
  PLAYFS_TRY(auto forget, connection.use(kForget));
  PLAYFS_CHECK(forget->bind(1, charge.bucket).bind(2, time).bind(3, expiry).run());
  PLAYFS_TRY(auto sweep, connection.use(kSweep));
  PLAYFS_CHECK(sweep->bind(1, time).run());

  if (charge.allowance > 0) {
    PLAYFS_TRY(auto in_the_way, connection.use(kInTheWay));
    PLAYFS_TRY(bool full, in_the_way->bind(1, charge.bucket).bind(2, charge.allowance - 1).step());
    if (!full) {
      PLAYFS_TRY(auto count, connection.use(kCount));
      return count->bind(1, charge.bucket).bind(2, expiry).run();
    }
    return fail(limit_reached(charge, in_the_way->integer(0) - time));
  }
  return fail(writes_not_allowed(charge));
}

}  // namespace playfs::service
