// Checking a store in PostgreSQL, whether or not it is in use. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace playfs::service {

/// Reads the whole store: the order of the records, each record's text, and that the next numbers are new. Returns the
/// number of records. Errors: not_found; corrupt, naming the first problem.
Result<std::uint64_t> check_postgres_store(const std::string& uri);

}  // namespace playfs::service
