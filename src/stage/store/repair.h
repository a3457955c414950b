// Checks and repairs a stage's directory while no mount has it open.
//
// A check changes nothing: it works on copies of the database and the operations log. A repair deletes nothing: what
// would block the next mount moves to `lost+found/` in the stage's directory. Both hold the stage's lock, so a mount
// that starts meanwhile fails with `busy`. Blocking; no shared state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace playfs::stage {

struct StageHealth {
  bool in_use = false;                 ///< a process has it open; nothing else was examined
  std::string holder;                  ///< pid of that process, if known
  std::optional<Error> database;       ///< `corrupt`, or `not_supported` (a newer format); the rest is unknown then
  std::uint64_t files = 0;             ///< spool files that are referenced
  std::vector<std::string> lost;       ///< paths of the pending layer whose bytes are missing or have another size
  std::vector<std::string> gone;       ///< staged files whose bytes are missing or truncated
  std::vector<std::uint64_t> bad;      ///< referenced spool files that are not plain files, or not private to this user
  std::vector<std::uint64_t> orphans;  ///< spool files neither referenced nor given up
  std::string pending_tx;              ///< of the publication in progress; its journal knows how far it got
  std::uint64_t operations = 0;        ///< in the log but not in the database; the next mount applies them
  std::uint64_t torn = 0;              ///< bytes of the log that form no operation
  bool has_changed_last = false;       ///< they are an operation that was altered after it was written
  bool is_log_damaged = false;         ///< records follow the damage, so no mount opens it
  std::uint64_t checkpoints = 0;       ///< that can be restored
  std::vector<Error> damaged_checkpoints;  ///< why others cannot; neither a mount nor a repair minds them

  [[nodiscard]] bool is_sound() const {
    return !database && lost.empty() && gone.empty() && bad.empty() && orphans.empty() && torn == 0;
  }
};

/// Whether `directory` holds a stage, sound or not.
bool is_stage(const std::string& directory);

/// A file without a spool file may just be empty; it is `gone` only if its recorded size says that it had bytes.
Result<StageHealth> examine(const std::string& directory);

/// Moves orphans to `lost+found/<label>/`, and copies a torn or damaged log there, of which only the operations before
/// the damage count, with `names` as below. Makes spool files private. A `corrupt` database moves there with its log,
/// the whole spool, the publication journal, and `names`, a list of the paths that readable rows and operations give
/// for each spool file; the next mount then starts anew on head. Newer formats and lost files are left alone. Returns
/// the folder that was filled, "" if none was needed; `busy` if a process has the stage open.
Result<std::string> repair(const std::string& directory, const std::string& label);

}  // namespace playfs::stage
