// A listener to test, and a client for it that sends exactly the bytes it is given.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "base/fd.h"
#include "http/server.h"

namespace playfs::http {

/// A client that sends exactly the bytes it is given.
class Connection {
 public:
  /// `window`: how many bytes the kernel buffers before the client reads; 0: the kernel's default.
  explicit Connection(std::uint16_t port, const char* from = "127.0.0.1", int window = 0)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (window > 0) setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &window, sizeof window);
    sockaddr_in address{}, own{};
    own.sin_family = address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    inet_pton(AF_INET, from, &own.sin_addr);
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<sockaddr*>(&own), sizeof own), 0);
    timeval patience{20, 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    connected = connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  /// One response, header and body; if the server closes early, whatever has arrived.
  std::string receive(bool head = false) {
    for (;;) {
      auto end = received_.find("\r\n\r\n");
      if (end != std::string::npos) {
        std::size_t length = 0;
        auto field = received_.find("Content-Length: ");
        if (!head && field < end) length = std::stoul(received_.substr(field + 16));
        if (received_.size() >= end + 4 + length) {
          std::string response = received_.substr(0, end + 4 + length);
          received_.erase(0, response.size());
          return response;
        }
      }
      if (!read_more()) return std::exchange(received_, {});
    }
  }

  /// Reads up to `most` bytes, as soon as there are any; returns how many.
  std::size_t take(std::size_t most) {
    std::string bytes(most, '\0');
    ssize_t got = recv(fd_.get(), bytes.data(), most, 0);
    if (got > 0) received_.append(bytes, 0, static_cast<std::size_t>(got));
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  /// Reads until nothing more comes.
  void take_what_is_there() {
    pollfd peer{fd_.get(), POLLIN, 0};
    while (poll(&peer, 1, 100) > 0 && take(65'536) > 0) {
    }
  }
  [[nodiscard]] const std::string& received() const { return received_; }

  /// Closes it as a program does that gives up (RST), rather than one that has sent everything (FIN).
  void reset() {
    linger at_once{1, 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    fd_ = UniqueFd();
  }

  bool closed_by_server() {
    while (read_more()) {
    }
    return closed_;
  }

  bool connected = false;

 private:
  bool read_more() {
    char bytes[4096];
    ssize_t got = recv(fd_.get(), bytes, sizeof bytes, 0);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) closed_ = true;
    if (got <= 0) return false;
    received_.append(bytes, static_cast<std::size_t>(got));
    return true;
  }

  UniqueFd fd_;
  std::string received_;
  bool closed_ = false;
};

inline HttpResponse echo(const HttpRequest& request, const std::string& peer) {
  return {
      200, {{"Content-Type", "text/plain"}}, request.method + " " + request.target + " " + peer + " " + request.body};
}

inline std::unique_ptr<Server> start(ServerOptions options = {}, Handler handler = echo) {
  auto server = Server::start(std::move(options), std::move(handler));
  EXPECT_TRUE(server) << server.error().message;
  return server ? *std::move(server) : nullptr;
}

inline bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

inline const std::string kGet = "GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n";

/// A handler that blocks until it is released.
class Gate {
 public:
  HttpResponse operator()() {
    std::unique_lock lock(mutex_);
    ++inside_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
    return {200, {}, "through"};
  }
  void await_inside(int count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(50), [&] { return inside_ == count; })) << inside_;
  }
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool open_ = false;
};

}  // namespace playfs::http
