// Write limits in PostgreSQL: an exact sliding window for all servers together, counted with one statement for any
// number of writes. Pure: makes the statement and reads its answer.
//
// The row of a bucket has the times at which its writes expire. It stays locked until the transaction ends, so no two
// servers count the same room; buckets are locked in their order, so no two wait for each other.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "service/postgres_pool.h"
#include "service/postgres_values.h"
#include "service/store.h"

namespace playfs::service {

class PostgresCharges {
 public:
  /// Before the statement is sent.
  void add(const Charge& charge);
  [[nodiscard]] bool empty() const { return asks_.empty(); }

  /// Counts as many of the added writes as there is room for.
  [[nodiscard]] PostgresStatement statement(WallTime now) const;

  /// Takes the statement's answer.
  void granted(const PostgresRows& rows);
  /// Afterwards, for each added write in turn. Errors: rate_limited, with the time until a write is free again, or for
  /// an allowance of 0.
  Status take(const Charge& charge, WallTime now);

 private:
  struct Ask {
    const Charge* charge;
    std::int64_t wanted = 0;
    std::int64_t granted = 0;
    std::int64_t in_the_way = 0;  ///< the expiry of the write that has to expire before another one fits
  };
  std::map<std::string, Ask, std::less<>> asks_;
};

/// Removes buckets in which nothing counts any more, some at a time.
Status sweep_postgres_limits(PostgresPool& pool, WallTime now);

}  // namespace playfs::service
