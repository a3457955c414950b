// Care for a store's file, while others use it or not. Thread-safe; each call has a connection of its own.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace playfs::service {

/// A copy of the store at `path` in a new file `copy`, as of one moment, safe from a power loss when this returns.
/// Errors: not_found, already_exists, no_space …
Status back_up_store(const std::string& path, const std::string& copy);

/// Reads all of the store: the database's own structure, the order of the records, and each record's text. Returns how
/// many there are. Errors: not_found; corrupt, saying what was found first.
Result<std::uint64_t> check_store(const std::string& path);

}  // namespace playfs::service
