// An HTTP/1.1 listener for a handler of independent requests: keep-alive, limits, graceful stop.
//
// One thread does all network I/O and never blocks. The handler, which waits for disks, runs on small pools, one for
// each kind of request: reads, writes, pages, checks. On each of them clients take turns. An idle connection costs a
// few kilobytes and no thread, and so does one whose answer has no end (events). TLS and HTTP/2 are left to a proxy in
// front. Thread-safe.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/http.h"
#include "base/result.h"
#include "http/answer.h"

namespace playfs::http {

struct ServerOptions {
  std::string address = "127.0.0.1";  ///< an IPv4 or IPv6 address
  std::uint16_t port = 0;             ///< 0: a free one
  unsigned read_threads = 0;          ///< for GET, HEAD and OPTIONS; 0: as many as cores, at least 2
  unsigned write_threads = 64;        ///< that wait for the disk together, so far more than cores
  /// For pages; 0: half the cores.
  unsigned page_threads = 0;
  /// Additional threads for reads, and for pages, of clients whose recent requests of that kind were cheap.
  unsigned light_threads = 1;
  /// Past it, a page of the client with the most waiting pages is refused.
  std::size_t most_waiting_pages = 256;
  /// The same for each other kind of request. All kinds together should leave connections for newcomers.
  std::size_t most_waiting = 1'000;
  /// Whether a request is for a page, which may cost far more than any other: pages wait only for one another. Empty:
  /// there are no pages.
  std::function<bool(const HttpRequest&)> is_page;
  /// Whether a request is a health check: checks wait only for one another. Empty: there are none.
  std::function<bool(const HttpRequest&)> is_check;
  /// The client that a request counts against, behind a proxy; empty: the peer.
  std::function<std::string(const HttpRequest&, const std::string& peer)> client;
  std::uint32_t header_limit = 16 * 1024;
  std::uint64_t body_limit = 256 * 1024;
  /// Past it, the client with the most connections loses one: the least recently served that is not in use.
  std::size_t connection_limit = 8'000;
  /// Connections that get an answer without an end, which takes no thread and never gives way to others; further ones
  /// are 503. At most two thirds of all connections, so that there is room for others.
  std::size_t most_watchers = 4'500;
  std::size_t watchers_of_client = 512;
  /// Header fields of one request.
  std::size_t field_limit = 128;
  /// Bytes that connections may hold in memory: unfinished requests, and answers until their clients have read them.
  /// Past it, the connection without progress for the longest time is closed. If all go on, the newcomer gets 503.
  std::size_t most_held = 24 << 20;
  std::size_t share_of_held = 12 << 20;           ///< per client; its further requests and answers are 503
  std::chrono::milliseconds idle_time{75'000};    ///< between requests
  std::chrono::milliseconds header_time{10'000};  ///< from the first byte of a request to the end of its header
  std::chrono::milliseconds body_time{30'000};    ///< for the body
  std::chrono::milliseconds write_time{60'000};   ///< without the client reading any of a response
  std::chrono::milliseconds watch_time{20'000};   ///< without a watcher reading any of what it was sent
  std::chrono::milliseconds stop_time{10'000};    ///< for running requests to finish in stop()
};

/// Answers a request of the client at `peer` (a numeric address, no port). Called on several threads at once; must not
/// throw. HEAD is passed on as such; a body in its answer is measured and left out.
using Handler = std::function<Answer(const HttpRequest& request, const std::string& peer)>;

/// How much a server has to do.
struct ServerLoad {
  struct Queue {
    const char* name;
    std::size_t waiting;
  };
  std::array<Queue, 5> queues;
  std::size_t connections = 0;
  std::size_t watchers = 0;
  std::size_t held_bytes = 0;  ///< in memory, for connections
  std::uint64_t refused = 0;   ///< requests, since a queue or the memory was full
};
/// In Prometheus' text format.
void print_load(const ServerLoad& load, std::string& out);

class Server {
 public:
  /// Listens when it returns. Errors: invalid_argument for a malformed address, otherwise bind(2)'s.
  static Result<std::unique_ptr<Server>> start(ServerOptions options, Handler handler);
  /// As stop().
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  /// "127.0.0.1:8787", "[::1]:8787".
  [[nodiscard]] std::string endpoint() const;

  [[nodiscard]] ServerLoad load() const;

  /// Stops accepting, closes idle connections, finishes running requests, then ends. Idempotent.
  void stop();

 private:
  class Core;
  explicit Server(std::shared_ptr<Core> core);
  std::shared_ptr<Core> core_;
};

}  // namespace playfs::http
