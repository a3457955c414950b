// The tables of a store in PostgreSQL, and their version. README.md has the reasons for them.
#pragma once

#include <string>

#include "base/result.h"
#include "service/postgres_pool.h"
#include "service/postgres_values.h"

namespace playfs::service {

/// What does not change with the records.
struct PostgresSite {
  std::string id;
  std::string closed;  ///< see closed_store.h
};

/// Upgrades the tables in one transaction, or creates them, with `created` as the site. Several servers may call it at
/// once, also while others serve. Errors: not_supported for tables that only a newer playfs can use.
Result<PostgresSite> prepare_postgres_schema(PostgresPool& pool, const PostgresSite& created);

/// For callers that create no store. Errors: not_found without one; not_supported for another version.
Result<PostgresSite> require_postgres_schema(PostgresPool& pool);

/// The same for callers that must know all of the tables. Errors: also not_supported for any newer version.
Result<PostgresSite> require_this_postgres_schema(PostgresPool& pool);

/// Goes with every change of `closed`: servers that do not know it may not be started on a closed store.
PostgresStatement set_oldest_server(bool is_closed);

}  // namespace playfs::service
