// The tables of a store, and the file's schema version. README.md has the reasons for them.
#pragma once

#include <string>

#include "base/result.h"
#include "base/sqlite.h"

namespace playfs::service {

/// What does not change with the records.
struct SqliteSite {
  std::string id;
  std::string closed;  ///< see closed_store.h
};

/// Upgrades the tables, or creates them, with `created` as the site. Several processes may call it at once on a new
/// file. Errors: not_supported for a file of a newer playfs.
Result<SqliteSite> prepare_schema(Database& database, const SqliteSite& created);

/// For callers that create no store. Errors: not_found without one; not_supported for another version.
Result<SqliteSite> require_current_schema(Database& database);

}  // namespace playfs::service
