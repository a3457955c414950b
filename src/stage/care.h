// Care of a stage's directory while no mount has it open: whether it is sound, and setting aside what is not.
//
// Looking changes nothing: the database and the operations log are examined in a copy. Mending removes nothing: what is
// in the way of the next mount goes to `lost+found/` beside the stage. Both hold the stage's lock meanwhile, so that a
// mount that begins is told `busy`. Blocking; no shared state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace playfs::stage {

struct StageHealth {
  bool in_use = false;             ///< a process has it open: nothing else was looked at
  std::string holder;              ///< the number of that process, where it is known
  std::optional<Error> database;   ///< `corrupt`, or `not_supported`: of a newer format; then the rest is not known
  std::uint64_t files = 0;         ///< spool files that something names
  std::vector<std::string> lost;   ///< paths that a publication has begun to send and whose bytes are not there in full
  std::vector<std::string> gone;   ///< staged files whose bytes are gone or cut off
  std::vector<std::uint64_t> bad;  ///< named spool files that are no plain file, or not this user's alone
  std::vector<std::uint64_t> orphans;  ///< spool files that nothing accounts for
  std::string pending_tx;              ///< of a publication that has begun; its journal knows how far it is
  std::uint64_t operations = 0;        ///< in the log and not in the database: the next mount brings them there
  std::uint64_t torn = 0;              ///< bytes of the log that are no operations
  bool has_changed_last = false;       ///< they are an operation that was changed since it was written
  bool is_log_damaged = false;         ///< others follow them, so that no mount opens it

  [[nodiscard]] bool is_sound() const {
    return !database && lost.empty() && gone.empty() && bad.empty() && orphans.empty() && torn == 0;
  }
};

/// Whether `directory` is that of a stage, sound or not.
bool is_stage(const std::string& directory);

/// A file whose spool file is missing may be an empty one: it is `gone` where there were bytes by what is written down.
Result<StageHealth> examine(const std::string& directory);

/// Orphans go to `lost+found/<label>/`, and a copy of a log that is torn or damaged, of which the operations before the
/// damage count, with `names` as below; modes of spool files become private. A database that is `corrupt` goes there
/// with its log, its whole spool, the publication journal, and `names`, a list of what its readable rows and operations
/// call each spool file: the next mount then begins anew on head. What is of a newer format or lost stays. Answers the
/// folder that was filled, "" where none was needed; `busy` where a process has the stage open.
Result<std::string> mend(const std::string& directory, const std::string& label);

}  // namespace playfs::stage
