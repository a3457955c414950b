// Backup and checking of a store's file, whether or not it is in use. Thread-safe; each call opens its own connection.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace playfs::service {

/// Copies the store at `path`, as of one moment, to the new file `copy`, and syncs it.
/// Errors: not_found, already_exists, no_space …
Status back_up_store(const std::string& path, const std::string& copy);

/// Reads the whole store: the database's own structure, the order of the records, and each record's text. Returns the
/// number of records. Errors: not_found; corrupt, naming the first problem.
Result<std::uint64_t> check_store(const std::string& path);

}  // namespace playfs::service
