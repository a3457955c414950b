#include "mcp/client_end.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <string_view>

namespace playfs::mcp {

namespace {

using SteadyClock = std::chrono::steady_clock;

/// How long a client that has closed its side may take to read the rest.
constexpr std::chrono::seconds kPatience{2};
constexpr int kLookEvery = 200;  // milliseconds

}  // namespace

void ClientEnd::send(std::string line) {
  line += '\n';
  {
    MutexLock lock(mutex_);
    while (is_sending_) sent_.wait(mutex_);
    is_sending_ = true;
  }
  write_all(line);
  MutexLock lock(mutex_);
  is_sending_ = false;
  sent_.notify_one();
}

void ClientEnd::write_all(std::string_view line) {
  while (!line.empty() && !is_gone_) {
    const long size = write_some(line);
    if (size >= 0) line.remove_prefix(static_cast<std::size_t>(size));
    else if (errno == EAGAIN || errno == EWOULDBLOCK) is_gone_ = !wait_for_room();
    else if (errno != EINTR) is_gone_ = true;
  }
}

/// Never blocks: on a socket by a flag; a pipe that is ready has room for a page. (O_NONBLOCK would also be set for
/// whoever else has the descriptor.)
long ClientEnd::write_some(std::string_view data) const {
  const ssize_t sent = ::send(out_, data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0 || errno != ENOTSOCK) return sent;
  pollfd room{out_, POLLOUT, 0};
  const int ready = poll(&room, 1, 0);
  if (ready < 0) return -1;
  if (ready == 0) return errno = EAGAIN, -1;
  return write(out_, data.data(), std::min<std::size_t>(data.size(), PIPE_BUF));
}

bool ClientEnd::wait_for_room() const {
  for (auto end = SteadyClock::time_point::max(); SteadyClock::now() < end;) {
    pollfd ends[] = {{out_, POLLOUT, 0}, {in_, POLLRDHUP, 0}};
    const int ready = poll(ends, 2, end == SteadyClock::time_point::max() ? -1 : kLookEvery);
    if (ready < 0 && errno != EINTR) return false;
    if (ready < 0) continue;
    if (ends[0].revents != 0) return true;
    if (ends[1].revents == 0 || end != SteadyClock::time_point::max()) {
      // Its hang-up would end each poll at once from now on.
      if (ready > 0) poll(nullptr, 0, kLookEvery);
      continue;
    }
    end = SteadyClock::now() + kPatience;
  }
  return false;
}

}  // namespace playfs::mcp
