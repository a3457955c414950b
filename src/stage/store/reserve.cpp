#include "stage/store/reserve.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"

namespace playfs::stage {

namespace {
// Enough for some thousands of removals.
constexpr std::uint64_t kForTheLog = 1 << 20;
constexpr std::chrono::seconds kPause{1};
}  // namespace

bool Reserve::keep(const Rows& rows) {
  const std::uint64_t wanted = kForTheLog + rows.checkpoint_space();
  if (size_ >= wanted) return true;
  const std::uint64_t size = wanted + kForTheLog;
  UniqueFd fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd || posix_fallocate(fd.get(), 0, static_cast<off_t>(size)) != 0) return false;
  size_ = size;
  return true;
}

void Reserve::keep_after_removal(const Rows& rows, const Clock& clock) {
  if (size_ > 0 || clock.steady() - tried_ < kPause) return;
  tried_ = clock.steady();
  if (!keep(rows)) give_up();
}

void Reserve::give_up() {
  ::unlink(path_.c_str());
  size_ = 0;
}

}  // namespace playfs::stage
