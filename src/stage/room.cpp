// Room on the disk: what lets files be removed when there is none left.
//
// Removing a name writes rows, and rows need room: in SQLite's log, and in the database when the log is brought into
// it. So a file is kept that holds as much room as the log could need there, and some for the log itself. On a full
// disk it is given up, the log is brought in and emptied, and the operation tried once more; removing then needs no
// more room than the log has left behind.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "stage/state.h"

namespace playfs::stage {

namespace {
// The pages of the log that some dozens of removals write.
constexpr std::uint64_t kForTheLog = 1 << 20;
constexpr std::chrono::seconds kPatience{1};
}  // namespace

bool Stage::State::has_reserve() {
  auto wanted = [this]() PLAYFS_NO_ANALYSIS {
    struct stat log {};
    bool has_log = stat(rows->log_path().c_str(), &log) == 0;
    return kForTheLog + (has_log ? static_cast<std::uint64_t>(log.st_size) : 0);
  };
  if (reserve >= wanted()) return true;
  auto grow = [&]() PLAYFS_NO_ANALYSIS {
    std::uint64_t size = wanted() + kForTheLog;
    UniqueFd fd(::open(reserve_path().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd || posix_fallocate(fd.get(), 0, static_cast<off_t>(size)) != 0) return false;
    reserve = size;
    return true;
  };
  if (grow()) return true;
  // Room for a shorter log may be there.
  static_cast<void>(make_room(true));
  if (grow()) return true;
  give_up_reserve();
  return false;
}

void Stage::State::keep_reserve_after_removal() {
  if (reserve > 0 || clock.steady() - reserve_tried < kPatience) return;
  reserve_tried = clock.steady();
  static_cast<void>(has_reserve());
}

void Stage::State::give_up_reserve() {
  ::unlink(reserve_path().c_str());
  reserve = 0;
}

bool Stage::State::make_room(bool for_removal) {
  give_up_reserve();
  if (auto done = rows->empty_log(); !done) log_debug("checkpoint on a full disk: " + done.error().message);
  return for_removal || has_reserve();
}

}  // namespace playfs::stage
