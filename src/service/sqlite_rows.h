// A store in SQLite as rows. See stored_rows.h.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "service/stored_rows.h"

namespace playfs::service {

/// Errors: not_found; not_supported for a store of another version.
Result<std::unique_ptr<StoredRows>> open_sqlite_rows(const std::string& path);
/// The same, but if there is no store, makes an unfinished one of that site. One that is there is not brought up to
/// date: it may be another.
Result<std::unique_ptr<StoredRows>> open_sqlite_copy(const std::string& path, const std::string& site_id);

}  // namespace playfs::service
