// Records what was sent last, in a small file beside the publication journal's database (`publish.db-sent`). SQLite
// silently drops the damaged end of a log, and a user may restore an older database; this file tells that rows are
// missing.
//
// Plain functions over one file. The caller holds the stage's lock.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "publish/journal.h"

namespace playfs::publish {

/// Synced when it returns. `database`: its path.
Status write_sent(const std::string& database, const Sent& sent);
/// nullopt if the file is missing or damaged; then only the rows are known.
Result<std::optional<Sent>> read_sent(const std::string& database);
Status remove_sent(const std::string& database);

}  // namespace playfs::publish
