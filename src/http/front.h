// The network front of the service: compression, health checks, counters, the access log. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/histogram.h"
#include "base/http.h"
#include "base/result.h"
#include "http/health.h"
#include "http/server.h"
#include "service/site_hosts.h"

namespace playfs::http {

/// One line of JSON per request: time, client, request line, status, size and duration, but no headers and no bodies.
/// Thread-safe; each line is one write. The file may be a pipe; lines that it does not take are dropped.
class AccessLog {
 public:
  /// Created with mode 0600.
  static Result<std::unique_ptr<AccessLog>> open(const std::string& path);

  struct Entry {
    WallTime time;
    std::string client;
    std::string method;
    std::string target;
    int status = 0;
    std::size_t bytes = 0;
    std::chrono::nanoseconds took{};
  };
  void write(const Entry& entry);

 private:
  explicit AccessLog(UniqueFd file) : file_(std::move(file)) {}
  UniqueFd file_;
  std::atomic<bool> torn_ = false;  ///< the last line was cut short: the disk or the pipe was full
};

/// The kinds of requests that the metrics tell apart.
enum class RouteClass { read, write, page, events, export_, account, sign_in, check, other };

/// What is counted for each of them.
struct RouteCounters {
  static constexpr std::array<double, 9> kSeconds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1, 5};
  static constexpr std::array<double, 6> kBytes = {256, 1024, 8192, 65536, 262144, 1048576};
  Histogram<9> seconds{kSeconds};
  Histogram<6> bytes{kBytes};
};

/// What `/metrics` shows, in Prometheus' text format.
class Counters {
 public:
  void count(RouteClass route, std::string_view method, int status, std::size_t bytes, std::chrono::nanoseconds took);
  [[nodiscard]] std::string prometheus() const;

 private:
  static constexpr std::array<std::string_view, 6> kMethods = {"GET", "HEAD", "POST", "PATCH", "OPTIONS", "other"};
  static constexpr std::array<const char*, 9> kRoutes = {"read",    "write",   "page",  "events", "export",
                                                         "account", "sign_in", "check", "other"};

  /// By method and first digit of the status.
  std::array<std::array<std::atomic<std::uint64_t>, 6>, kMethods.size()> requests_{};
  std::array<RouteCounters, kRoutes.size()> routes_{};
  std::atomic<std::uint64_t> bytes_{0};
};

class Front {
 public:
  struct Options {
    AccessLog* log = nullptr;     ///< none: no log
    service::SiteHosts site{{}};  ///< metrics are only served under this site's own names
    /// The client to log behind a proxy; none: the peer.
    std::function<std::string(const HttpRequest&, const std::string& peer)> client;
    std::function<RouteClass(const HttpRequest&)> classify;  ///< none: `other`. Called once the server has started
    std::function<std::string()> more_metrics;               ///< the same
  };

  /// Health, clock and log must outlive it. While the server is starting, the service is not called.
  Front(Handler service, Health& health, Options options, const Clock& clock);

  /// Whether a request is answered here, without the service.
  static bool is_own(const HttpRequest& request);
  /// A Handler for a Server.
  Answer handle(const HttpRequest& request, const std::string& peer);

 private:
  Answer route(const HttpRequest& request, const std::string& peer);
  [[nodiscard]] RouteClass class_of(const HttpRequest& request) const;
  const Handler service_;
  Health& health_;
  const Options options_;
  const Clock& clock_;
  Counters counters_;
};

}  // namespace playfs::http
