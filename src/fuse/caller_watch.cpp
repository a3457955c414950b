#include "fuse/caller_watch.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "vfs/process_field.h"

namespace playfs::fuse {

namespace {

constexpr std::uint64_t kStop = ~std::uint64_t{0};

/// For a thread that need not be its process's first. Kernels before 6.9 only know processes.
UniqueFd open_thread(pid_t thread) {
  constexpr unsigned kThread = O_EXCL;  // PIDFD_THREAD, missing from older headers
  UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, thread, kThread)));
  if (fd || errno != EINVAL) return fd;
  fd = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, thread, 0)));
  if (fd || errno != EINVAL) return fd;
  const auto process = vfs::process_field(thread, "Tgid");
  return process ? UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, *process, 0))) : UniqueFd();
}

/// Whether the descriptors left should be kept for files that other callers need opened. A new descriptor gets the
/// lowest free number, so its number tells how many are in use.
bool is_of_the_reserve(const UniqueFd& fd) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  return static_cast<rlim_t>(fd.get()) >= limit.rlim_cur / 2;
}

}  // namespace

CallerWatch::~CallerWatch() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  // Fails only after 2^64 calls.
  [[maybe_unused]] ssize_t written = write(stop_.get(), &one, sizeof one);
  thread_.join();
}

bool CallerWatch::begin() {
  if (thread_.joinable()) return true;
  watched_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  stop_ = UniqueFd(eventfd(0, EFD_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kStop;
  if (!watched_ || !stop_ || epoll_ctl(watched_.get(), EPOLL_CTL_ADD, stop_.get(), &event) != 0) return false;
  thread_ = std::thread([this] { run(); });
  return true;
}

UniqueFd CallerWatch::watch(std::uint64_t number, pid_t thread) {
  // 0: in a pid namespace hidden from us, or a kernel thread.
  if (thread <= 0) return {};
  UniqueFd fd = open_thread(thread);
  if (!fd && errno == ESRCH) gone_(number);
  if (!fd || is_of_the_reserve(fd)) return {};
  MutexLock lock(mutex_);
  if (!begin()) return {};
  epoll_event event{};
  event.events = EPOLLIN | EPOLLONESHOT;
  event.data.u64 = number;
  if (epoll_ctl(watched_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) return {};
  return fd;
}

void CallerWatch::run() {
  for (;;) {
    epoll_event event{};
    const int count = epoll_wait(watched_.get(), &event, 1, -1);
    if (count < 0 && errno != EINTR) return;
    if (count <= 0) continue;
    if (event.data.u64 == kStop) return;
    gone_(event.data.u64);
  }
}

}  // namespace playfs::fuse
