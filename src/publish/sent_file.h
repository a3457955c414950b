// What was sent last, in a small file beside the publication journal's database (`publish.db-sent`). SQLite drops the
// end of a log that is damaged without a word, and a user may put an older database back; this tells that rows are
// missing.
//
// Plain functions over one file, for whoever has the stage's lock.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "publish/journal.h"

namespace playfs::publish {

/// Synced when it returns. `database`: its path.
Status write_sent(const std::string& database, const Sent& sent);
/// Nothing where there is no such file, or where it is damaged: then the rows are all that is known.
Result<std::optional<Sent>> read_sent(const std::string& database);
Status remove_sent(const std::string& database);

}  // namespace playfs::publish
