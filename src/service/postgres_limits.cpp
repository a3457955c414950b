#include "service/postgres_limits.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "service/charges.h"
#include "service/stored_time.h"

namespace playfs::service {

namespace {

// A write that expires more than this much later than the new one was counted before a clock was set back. The margin
// allows for servers whose clocks differ a little.
constexpr std::int64_t kClockMargin = 60'000'000;
constexpr std::int64_t kHour = 3'600'000'000;

// Drops a bucket's expired writes, and adds as many of the new ones as there is room for. If another server has the row
// locked, ON CONFLICT waits and then reads the new version of it.
constexpr const char* kCount = R"sql(
INSERT INTO write_limits AS held (bucket, expiries, allowance, granted, last_hour)
SELECT bucket, ARRAY(SELECT expiry FROM generate_series(1, LEAST(wanted, allowance))), allowance,
       LEAST(wanted, allowance), last_hour
FROM unnest($1, $2, $3, $4, $5) AS ask (bucket, wanted, allowance, expiry, last_hour)
ORDER BY bucket
ON CONFLICT (bucket) DO UPDATE SET (expiries, allowance, granted, last_hour) = (
  SELECT ARRAY(SELECT expiry FROM (
           SELECT expiry FROM unnest(live.expiries) AS a (expiry)
           UNION ALL
           SELECT expiry FROM unnest(excluded.expiries) WITH ORDINALITY AS b (expiry, n) WHERE n <= room.n
         ) AS every ORDER BY expiry),
         excluded.allowance, LEAST(cardinality(excluded.expiries), room.n), excluded.last_hour
  FROM (SELECT ARRAY(SELECT expiry FROM unnest(held.expiries) AS c (expiry)
                     WHERE expiry > $6 AND expiry <= excluded.expiries[1] + $7) AS expiries) AS live,
       LATERAL (SELECT GREATEST(0, excluded.allowance - cardinality(live.expiries)) AS n) AS room
)
RETURNING bucket, granted, expiries[cardinality(expiries) - allowance + 1]
)sql";

constexpr const char* kSweep = R"sql(
DELETE FROM write_limits WHERE bucket IN (SELECT bucket FROM write_limits WHERE last_hour < $1
                                         LIMIT 1000 FOR UPDATE SKIP LOCKED)
)sql";

}  // namespace

void PostgresCharges::add(const Charge& charge) {
  if (charge.allowance > 0) asks_.try_emplace(charge.bucket, Ask{&charge}).first->second.wanted++;
}

PostgresStatement PostgresCharges::statement(WallTime now) const {
  std::vector<std::optional<std::string_view>> buckets;
  std::vector<std::optional<std::int64_t>> wanted, allowances, expiries, hours;
  for (const auto& [bucket, ask] : asks_) {
    const std::int64_t expiry = to_column(now) + to_microseconds(ask.charge->window);
    buckets.emplace_back(bucket);
    wanted.emplace_back(ask.wanted);
    allowances.emplace_back(ask.charge->allowance);
    expiries.emplace_back(expiry);
    hours.emplace_back(expiry / kHour);
  }
  Parameters parameters;
  parameters.byte_strings(buckets).integers(wanted).integers(allowances).integers(expiries).integers(hours);
  return {kCount, parameters.integer(to_column(now)).integer(kClockMargin)};
}

void PostgresCharges::granted(const PostgresRows& rows) {
  for (int row = 0; row < rows.count(); ++row) {
    auto ask = asks_.find(rows.bytes(row, 0));
    if (ask == asks_.end()) continue;
    ask->second.granted = rows.integer(row, 1);
    ask->second.in_the_way = rows.integer(row, 2);
  }
}

Status PostgresCharges::take(const Charge& charge, WallTime now) {
  if (charge.allowance <= 0) return fail(writes_not_allowed(charge));
  auto ask = asks_.find(charge.bucket);
  if (ask == asks_.end()) return fail(ErrorCode::internal, "a write was not counted");
  if (ask->second.granted-- > 0) return {};
  return fail(limit_reached(charge, std::max(ask->second.in_the_way - to_column(now), std::int64_t{1})));
}

Status sweep_postgres_limits(PostgresPool& pool, WallTime now) {
  // Keeps one more hour, since a server whose clock is behind may still count those writes.
  auto swept = pool.run({kSweep, Parameters().integer(to_column(now) / kHour - 1)});
  if (!swept) return fail(std::move(swept).error());
  return {};
}

}  // namespace playfs::service
