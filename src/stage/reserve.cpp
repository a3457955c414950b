// Reserved disk space, so that files can be removed on a full disk.
//
// Removing a name appends to the operations log, which must fit into the database eventually. So a reserve file holds
// as much space as that may need, and some for the log. On a full disk the reserve is given up, the log is
// checkpointed, spool files waiting for removal are removed, and the operation is tried once more. If even the
// checkpoint finds no space nothing is lost: the log stays, and removals go on in the space that was given up.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "stage/stage_state.h"

namespace playfs::stage {

namespace {
// Enough for some thousands of removals.
constexpr std::uint64_t kForTheLog = 1 << 20;
constexpr std::chrono::seconds kPatience{1};
}  // namespace

bool Stage::State::has_reserve() {
  const std::uint64_t wanted = kForTheLog + rows->checkpoint_space();
  if (reserve >= wanted) return true;
  const std::uint64_t size = wanted + kForTheLog;
  UniqueFd fd(::open(reserve_path().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd || posix_fallocate(fd.get(), 0, static_cast<off_t>(size)) != 0) return false;
  reserve = size;
  return true;
}

void Stage::State::keep_reserve_after_removal() {
  if (reserve > 0 || clock.steady() - reserve_tried < kPatience) return;
  reserve_tried = clock.steady();
  if (!has_reserve()) give_up_reserve();
}

void Stage::State::give_up_reserve() {
  ::unlink(reserve_path().c_str());
  reserve = 0;
}

bool Stage::State::make_room(bool for_removal) {
  {
    MutexLock locked(mutex);
    give_up_reserve();
  }
  static_cast<void>(settle_replacements());
  // SQLite's log after a failed checkpoint, and spool files, may hold the space that the next checkpoint needs.
  for (int tries = 0; tries < 2; ++tries) {
    auto checkpointed = rows->checkpoint_all();
    auto emptied = rows->empty_database_log();
    remove_given_up();
    if (checkpointed && emptied) break;
    log_debug("checkpoint on a full disk: " + (checkpointed ? emptied : checkpointed).error().message);
  }
  if (for_removal) return true;
  MutexLock locked(mutex);
  if (has_reserve()) return true;
  give_up_reserve();
  return false;
}

}  // namespace playfs::stage
