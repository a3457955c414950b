#include "runtime/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"

namespace playfs::runtime {

void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) log_warning("cannot raise the limit of open files");
}

void hold_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // Gets the lowest free number, which is `fd`. Opened for the opposite direction, so that its use still fails.
    (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void close_inherited_descriptors(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  auto first = static_cast<unsigned>(STDERR_FILENO + 1);
  for (const int fd : kept) {
    const auto own = static_cast<unsigned>(fd);
    if (fd < 0 || own < first) continue;
    if (own > first) close_range(first, own - 1, 0);
    first = own + 1;
  }
  close_range(first, ~0U, 0);
}

}  // namespace playfs::runtime
