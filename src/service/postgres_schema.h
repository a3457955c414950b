// The tables of a store in PostgreSQL, and their version. README.md has the reasons for them.
#pragma once

#include <string>

#include "base/random.h"
#include "base/result.h"
#include "service/postgres_pool.h"

namespace playfs::service {

/// Creates or upgrades the tables in one transaction, and returns the store's site id. Several servers may call it at
/// once, also while others serve. Errors: not_supported for tables that only a newer playfs can use.
Result<std::string> prepare_postgres_schema(PostgresPool& pool, Random& random);

/// For callers that create no store: returns the site id of the one that is there. Errors: not_found without one;
/// not_supported for another version.
Result<std::string> require_postgres_schema(PostgresPool& pool);

}  // namespace playfs::service
