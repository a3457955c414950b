// Room on the disk: what lets files be removed when there is none left.
#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "stage/state.h"

namespace playfs::stage {

namespace {
// The pages of the database that removing a whole directory tree, name by name, may touch before a checkpoint.
constexpr off_t kReserve = 1 << 20;
constexpr std::chrono::seconds kPatience{1};
}  // namespace

void Stage::State::keep_reserve() {
  std::string path = options.directory + "/reserve";
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  has_reserve = fd && posix_fallocate(fd.get(), 0, kReserve) == 0;
  if (!has_reserve) ::unlink(path.c_str());
  reserve_tried = clock.steady();
}

bool Stage::State::make_room(bool for_removal) {
  MutexLock locked(mutex);
  // What stands in the log only has its place in the database after this, and the log begins anew.
  if (auto done = rows->checkpoint(); !done) log_debug("checkpoint on a full disk: " + done.error().message);
  if (!for_removal || !has_reserve) return true;
  has_reserve = false;
  return ::unlink((options.directory + "/reserve").c_str()) == 0;
}

void Stage::State::restore_reserve() {
  MutexLock locked(mutex);
  if (!has_reserve && clock.steady() - reserve_tried > kPatience) keep_reserve();
}

}  // namespace playfs::stage
