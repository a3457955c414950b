// Room on the disk: what lets files be removed when there is none left.
//
// Removing a name is written down in the operations log, and what is in the log has to find room in the database some
// day. So a file is kept that holds as much room as that may need, and some for the log. On a full disk it is given up,
// the log is folded, spool files that wait to be removed are removed, and the operation is tried once more. Where even
// the fold finds no room nothing is lost: the log stays, and removing goes on in the room that was given up.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "stage/state.h"

namespace playfs::stage {

namespace {
// Of some thousands of removals.
constexpr std::uint64_t kForTheLog = 1 << 20;
constexpr std::chrono::seconds kPatience{1};
}  // namespace

bool Stage::State::has_reserve() {
  const std::uint64_t wanted = kForTheLog + rows->room_to_fold();
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
  // What a fold that failed left in SQLite's log, and spool files, may hold the room that the next one needs.
  for (int tries = 0; tries < 2; ++tries) {
    auto folded = rows->fold_all();
    auto emptied = rows->empty_database_log();
    remove_given_up();
    if (folded && emptied) break;
    log_debug("fold on a full disk: " + (folded ? emptied : folded).error().message);
  }
  if (for_removal) return true;
  MutexLock locked(mutex);
  if (has_reserve()) return true;
  give_up_reserve();
  return false;
}

}  // namespace playfs::stage
