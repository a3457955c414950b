// A loopback link with a round trip: passes TCP connections on, each byte half the round trip late in each direction.
//
//   bench-delay LISTEN_PORT TARGET_PORT ROUND_TRIP_MS [slow-start]
//
// Bytes are delayed, not queued behind one another: bytes sent together arrive together, so pipelined and multiplexed
// streams cost one round trip. So does connecting, as a handshake would: what a client sends earlier than one round
// trip after it connected counts as sent at that time.
//
// With `slow-start`, what the server sends is held to a congestion window as a new TCP connection's is: ten segments,
// grown by what is acknowledged, one round trip after it left.
//
// Prints "ready" once it listens; ends by a signal. One thread, epoll.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;
using Duration = Clock::duration;

constexpr std::size_t kInitialWindow = 10 * std::size_t{1448};
constexpr std::size_t kNoWindow = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kMostUnderway = std::size_t{64} << 20;  // in one direction; then the sender waits, as on any link

[[noreturn]] void stop(const char* what) {
  std::perror(what);
  std::exit(1);
}

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

struct Settings {
  Duration round_trip{};
  bool slow_start = false;
};

/// One direction of a connection: bytes on their way from `source` to `target`.
class Pipe {
 public:
  Pipe(int source, int target, const Settings& settings, bool from_server, Time opened)
      : source_(source),
        target_(target),
        settings_(settings),
        // A server learns of a connection with the handshake's third message.
        earliest_(opened + settings.round_trip + (from_server ? settings.round_trip / 2 : Duration{})),
        window_(from_server && settings.slow_start ? kInitialWindow : kNoWindow) {}

  /// Takes what the sender has sent. False when the connection broke.
  bool take() {
    while (!ended_ && underway_ < kMostUnderway) {
      std::array<char, 65536> buffer;
      ssize_t got = recv(source_, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got < 0) return errno == EAGAIN || errno == EINTR;
      ended_ = got == 0;
      sent_.push_back({std::max(Clock::now(), earliest_), std::string(buffer.data(), static_cast<std::size_t>(got))});
      underway_ += static_cast<std::size_t>(got);
    }
    return true;
  }

  /// Moves on what is due at `now`. False when the connection broke.
  bool advance(Time now) {
    blocked_ = false;
    if (window_ != kNoWindow) {
      while (!unacknowledged_.empty() && unacknowledged_.front().first <= now) {
        in_flight_ -= unacknowledged_.front().second;
        window_ += unacknowledged_.front().second;
        unacknowledged_.pop_front();
      }
    }
    // Out of the sender, as the window allows: each byte then takes half a round trip.
    while (!sent_.empty() && sent_.front().first <= now && (sent_.front().second.empty() || in_flight_ < window_)) {
      auto& [when, bytes] = sent_.front();
      Time leaves = std::max(when, window_opened_);
      std::size_t count = std::min(bytes.size(), window_ - in_flight_);
      travelling_.push_back({leaves + settings_.round_trip / 2, bytes.substr(0, count)});
      if (window_ != kNoWindow && count) {
        in_flight_ += count;
        unacknowledged_.push_back({leaves + settings_.round_trip, count});
      }
      if (count == bytes.size()) sent_.pop_front();
      else bytes.erase(0, count);
    }
    window_opened_ = in_flight_ >= window_ ? unacknowledged_.front().first : Time{};
    while (!travelling_.empty() && travelling_.front().first <= now) {
      auto& bytes = travelling_.front().second;
      if (bytes.empty()) {
        shutdown(target_, SHUT_WR);
        finished_ = true;
      } else {
        ssize_t put = send(target_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put < 0 && errno != EAGAIN && errno != EINTR) return false;
        if (put > 0) underway_ -= static_cast<std::size_t>(put);
        if (put < 0 || static_cast<std::size_t>(put) < bytes.size()) {
          if (put > 0) bytes.erase(0, static_cast<std::size_t>(put));
          blocked_ = true;
          return true;
        }
      }
      travelling_.pop_front();
    }
    return true;
  }

  /// When there is next something to do; Time::max() when only a socket can say.
  Time due() const {
    Time next = Time::max();
    if (!travelling_.empty() && !blocked_) next = std::min(next, travelling_.front().first);
    if (!sent_.empty())
      next = std::min(next, in_flight_ < window_ ? sent_.front().first : unacknowledged_.front().first);
    if (window_ != kNoWindow && !unacknowledged_.empty()) next = std::min(next, unacknowledged_.front().first);
    return next;
  }

  bool finished() const { return finished_; }

 private:
  int source_, target_;
  Settings settings_;
  Time earliest_;
  std::size_t window_;
  std::size_t in_flight_ = 0, underway_ = 0;
  Time window_opened_{};
  bool ended_ = false, finished_ = false;
  bool blocked_ = false;                           // the receiver takes nothing more: its socket says when it does
  std::deque<std::pair<Time, std::string>> sent_;  // by when it was sent; an empty text is the end of the stream
  std::deque<std::pair<Time, std::string>> travelling_;  // by when it arrives
  std::deque<std::pair<Time, std::size_t>> unacknowledged_;
};

struct Connection {
  Connection(int client_fd, int server_fd, const Settings& settings)
      : client(client_fd),
        server(server_fd),
        up(client_fd, server_fd, settings, false, Clock::now()),
        down(server_fd, client_fd, settings, true, Clock::now()) {}

  /// False when it is over.
  bool work() {
    Time now = Clock::now();
    return up.take() && down.take() && up.advance(now) && down.advance(now) && !(up.finished() && down.finished());
  }
  Time due() const { return std::min(up.due(), down.due()); }

  Socket client, server;
  Pipe up, down;
};

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void without_delay(int fd) {
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

class Proxy {
 public:
  Proxy(int port, int target_port, Settings settings) : target_port_(target_port), settings_(settings) {
    int one = 1;
    sockaddr_in address = loopback(port);
    setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) || listen(listener_.get(), 512))
      stop("bench-delay: listen");
    watch(listener_.get(), EPOLLIN, nullptr);
    watch(timer_.get(), EPOLLIN, &timer_);
  }

  [[noreturn]] void run() {
    std::puts("ready");
    std::fflush(stdout);
    std::array<epoll_event, 256> events;
    while (true) {
      int count = epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), -1);
      if (count < 0 && errno != EINTR) stop("bench-delay: epoll_wait");
      std::set<Connection*> touched;
      for (int i = 0; i < count; ++i) {
        void* who = events[static_cast<std::size_t>(i)].data.ptr;
        if (who == nullptr) {
          accept_all();
        } else if (who == &timer_) {
          std::uint64_t expirations = 0;
          std::ignore = read(timer_.get(), &expirations, sizeof expirations);
        } else {
          touched.insert(static_cast<Connection*>(who));
        }
      }
      work(touched);
    }
  }

 private:
  void watch(int fd, std::uint32_t what, void* who) {
    epoll_event event{};
    event.events = what;
    event.data.ptr = who;
    if (epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event)) stop("bench-delay: epoll_ctl");
  }

  void accept_all() {
    while (true) {
      int client = accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (client < 0) return;
      int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in address = loopback(target_port_);
      if (connect(server, reinterpret_cast<sockaddr*>(&address), sizeof address)) {
        close(client);
        close(server);
        continue;
      }
      fcntl(server, F_SETFL, O_NONBLOCK);
      without_delay(client);
      without_delay(server);
      auto& connection = connections_.emplace_back(std::make_unique<Connection>(client, server, settings_));
      // Edge-triggered: a side that takes no more, or that has ended, must not wake us all the time.
      watch(client, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, connection.get());
      watch(server, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, connection.get());
    }
  }

  void work(const std::set<Connection*>& touched) {
    Time now = Clock::now(), next = Time::max();
    std::erase_if(connections_, [&](auto& connection) {
      bool over = (connection->due() <= now || touched.contains(connection.get())) && !connection->work();
      if (!over) next = std::min(next, connection->due());
      return over;
    });
    itimerspec alarm{};
    if (next != Time::max()) {
      // A moment of zero would disarm the timer; one that is past rings at once.
      auto when = next.time_since_epoch();
      auto seconds = std::chrono::duration_cast<std::chrono::seconds>(when);
      alarm.it_value.tv_sec = seconds.count();
      alarm.it_value.tv_nsec = std::chrono::duration_cast<std::chrono::nanoseconds>(when - seconds).count();
    }
    timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &alarm, nullptr);
  }

  int target_port_;
  Settings settings_;
  Socket poll_{epoll_create1(EPOLL_CLOEXEC)};
  Socket listener_{socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  Socket timer_{timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)};
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace

int main(int argc, char** argv) {
  bool slow_start = argc == 5 && std::strcmp(argv[4], "slow-start") == 0;
  if (argc != 4 && !slow_start) {
    std::fprintf(stderr, "usage: bench-delay LISTEN_PORT TARGET_PORT ROUND_TRIP_MS [slow-start]\n");
    return 2;
  }
  Settings settings{std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(std::atof(argv[3]))),
                    slow_start};
  signal(SIGPIPE, SIG_IGN);
  Proxy(std::atoi(argv[1]), std::atoi(argv[2]), settings).run();
}
