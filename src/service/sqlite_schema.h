// The tables of a store, and the file's schema version. README.md has the reasons for them.
#pragma once

#include <string>

#include "base/random.h"
#include "base/result.h"
#include "base/sqlite.h"

namespace playfs::service {

/// Creates or upgrades the tables, and returns the store's site id. Several processes may call it at once on a new
/// file. Errors: not_supported for a file of a newer playfs.
Result<std::string> prepare_schema(Database& database, Random& random);

/// For callers that only read a store. Errors: not_supported for another version, or for a file that is not a store.
Status require_current_schema(Database& database);

}  // namespace playfs::service
