// The tables of a store, and the file's own version. See README.md for why they are as they are.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "base/sqlite.h"

namespace playfs::service {

/// Makes the tables where there are none, and returns the store's site id. Several processes may call it at once on
/// a new file. Fails with not_supported for a file of a newer playfs.
Result<std::string> prepare_schema(Database& database, Random& random);

/// For what only looks at a store. Errors: not_supported for a store of another version, or no store at all.
Status require_current_schema(Database& database);

/// Times are kept as whole microseconds since the epoch.
inline std::int64_t to_column(WallTime time) { return time.nanoseconds / 1000; }
inline WallTime from_column(std::int64_t microseconds) { return {microseconds * 1000}; }

}  // namespace playfs::service
