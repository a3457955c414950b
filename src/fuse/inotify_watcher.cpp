#include "fuse/inotify_watcher.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace playfs::fuse {

Result<std::shared_ptr<InotifyWatcher>> InotifyWatcher::start(std::string mountpoint) {
  UniqueFd events(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)), wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!events || !wake) return fail(error_from_errno(errno, "watch for closed files"));
  return std::shared_ptr<InotifyWatcher>(new InotifyWatcher(std::move(mountpoint), std::move(events), std::move(wake)));
}

InotifyWatcher::InotifyWatcher(std::string mountpoint, UniqueFd events, UniqueFd wake)
    : mountpoint_(std::move(mountpoint)),
      events_(std::move(events)),
      wake_(std::move(wake)),
      thread_([this] { run(); }) {}

void InotifyWatcher::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
  std::deque<Order> orders;
  std::map<Watch, Watched> watched;  // their tasks are destroyed outside the lock
  {
    MutexLock lock(mutex_);
    orders.swap(orders_);
    watched.swap(watched_);
  }
  for (auto& order : orders) order.armed(fail(ErrorCode::interrupted, "the mount is shutting down"));
}

void InotifyWatcher::wake() {
  const std::uint64_t one = 1;
  // Fails only after 2^64 calls.
  [[maybe_unused]] ssize_t written = write(wake_.get(), &one, sizeof one);
}

void InotifyWatcher::watch(Watch watch, std::string path, Callback<void> armed, Task closed) {
  bool stopped = false;
  {
    MutexLock lock(mutex_);
    stopped = stopping_;
    if (!stopped) {
      Watched& watched = watched_[watch];
      watched.then = std::move(closed);
      orders_.push_back({watch, std::move(path), std::move(armed)});
    }
  }
  if (stopped) return armed(fail(ErrorCode::interrupted, "the mount is shutting down"));
  wake();
}

bool InotifyWatcher::was_closed(Watch watch) {
  bool taken = false, closed = false;
  {
    MutexLock lock(mutex_);
    taken = take_events();
    auto found = watched_.find(watch);
    closed = found != watched_.end() && found->second.closed;
  }
  if (taken) wake();  // these events no longer wake poll(2)
  return closed;
}

void InotifyWatcher::end(Watch watch) {
  Watched ended;
  MutexLock lock(mutex_);
  auto found = watched_.find(watch);
  if (found == watched_.end()) return;
  ended = std::move(found->second);
  watched_.erase(found);
  bool shared = std::any_of(watched_.begin(), watched_.end(),
                            [&](const auto& other) { return other.second.descriptor == ended.descriptor; });
  if (ended.descriptor >= 0 && !shared) inotify_rm_watch(events_.get(), ended.descriptor);
}

std::optional<vfs::CloseWatcher::Watch> InotifyWatcher::looked_up_by(pid_t thread) const {
  Watch watch = looking_up_;
  if (watch == 0 || thread != thread_id_) return std::nullopt;
  return watch;
}

bool InotifyWatcher::take_events() {
  bool any = false;
  alignas(inotify_event) char buffer[4096];
  for (;;) {
    ssize_t size = read(events_.get(), buffer, sizeof buffer);
    if (size <= 0) return any;
    any = true;
    for (ssize_t at = 0; at < size;) {
      inotify_event event;
      std::memcpy(&event, buffer + at, sizeof event);
      at += static_cast<ssize_t>(sizeof event) + event.len;
      bool known = false;
      for (auto& [watch, watched] : watched_) {
        // After an overflow any file may have been closed, so all count as closed. If one was not, its request is sent
        // too early, and the next write to it fails and says so.
        if ((event.mask & IN_Q_OVERFLOW) == 0 && watched.descriptor != event.wd) continue;
        known = true;
        if ((event.mask & (IN_CLOSE_WRITE | IN_Q_OVERFLOW)) != 0) watched.closed = true;
      }
      if (!known && (event.mask & IN_CLOSE_WRITE) != 0) early_.insert(event.wd);
      if ((event.mask & IN_IGNORED) != 0) early_.erase(event.wd);
    }
  }
}

void InotifyWatcher::carry_out(Order order) {
  {
    MutexLock lock(mutex_);
    if (!watched_.contains(order.watch)) return order.armed(fail(ErrorCode::interrupted, "no longer awaited"));
  }
  looking_up_ = order.watch;
  int descriptor =
      inotify_add_watch(events_.get(), (mountpoint_ + "/" + order.path).c_str(), IN_CLOSE_WRITE | IN_DONT_FOLLOW);
  const int failed = errno;
  looking_up_ = 0;
  {
    MutexLock lock(mutex_);
    auto found = watched_.find(order.watch);
    if (descriptor >= 0 && found == watched_.end()) inotify_rm_watch(events_.get(), descriptor);
    if (descriptor >= 0 && found != watched_.end()) {
      found->second.descriptor = descriptor;
      found->second.closed = early_.erase(descriptor) > 0;
    }
  }
  order.armed(descriptor >= 0 ? Status() : Status(fail(error_from_errno(failed, "watch " + order.path))));
}

void InotifyWatcher::tell_closed() {
  std::vector<Task> due;
  {
    MutexLock lock(mutex_);
    take_events();
    for (auto& [watch, watched] : watched_) {
      if (watched.closed && watched.then) due.push_back(std::exchange(watched.then, {}));
    }
  }
  for (auto& task : due) task();
}

void InotifyWatcher::run() {
  thread_id_ = static_cast<pid_t>(syscall(SYS_gettid));
  for (;;) {
    std::optional<Order> order;
    {
      MutexLock lock(mutex_);
      if (stopping_) return;
      if (!orders_.empty()) {
        order = std::move(orders_.front());
        orders_.pop_front();
      }
    }
    if (order) {
      carry_out(std::move(*order));
      continue;
    }
    tell_closed();
    pollfd sources[] = {{events_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    while (poll(sources, 2, -1) < 0 && errno == EINTR) continue;
    std::uint64_t count = 0;
    [[maybe_unused]] ssize_t cleared = read(wake_.get(), &count, sizeof count);
  }
}

}  // namespace playfs::fuse
