#include "base/beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include "base/fd.h"

namespace playfs {

namespace {

int open_one_by_one(int root, std::string_view path, int flags) {
  UniqueFd at(openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  while (at && !path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string name(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (name == "..") return errno = EXDEV, -1;
    const int how = path.empty() ? flags : O_PATH | O_DIRECTORY | O_CLOEXEC;
    at = UniqueFd(openat(at.get(), name.c_str(), how | O_NOFOLLOW));
  }
  return at.release();
}

}  // namespace

int open_beneath(int root, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  for (int tries = 0;; ++tries) {
    const long fd = syscall(SYS_openat2, root, path.empty() ? "." : path.c_str(), &how, sizeof how);
    if (fd >= 0) return static_cast<int>(fd);
    if (errno == ENOSYS || errno == EPERM) return open_one_by_one(root, path, flags);
    if (errno != EAGAIN || tries == 64) return -1;  // the path moved while it was resolved
  }
}

bool is_not_there(int errnum) { return errnum == ENOENT || errnum == ENOTDIR || errnum == ELOOP || errnum == EXDEV; }

}  // namespace playfs
