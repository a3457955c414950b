// HTTP over libcurl's multi interface: one I/O thread, connections kept and reused, HTTP/2 where it is offered.
//
// Thread-safe as every Transport; callbacks run on the I/O thread, so the destructor must not run there. Proxies are
// taken from the environment as curl does, but never for loopback hosts.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "net/transport.h"

namespace playfs::net {

struct CurlOptions {
  std::string ca_file = {};  ///< own certificate authority, PEM; empty: the system's
  std::string user_agent = "playfs";
  std::size_t response_ceiling = 4 << 20;  ///< bytes of a response body, after inflation
  /// How many requests one who has many may have under way over HTTP/1.1, each on a connection of its own.
  long width = 64;
  /// So that whoever hangs does not keep the others from theirs. Not a number to be reached: see README.md.
  long max_connections = 320;
  /// A transfer that moves fewer bytes a second than this for that long has stalled and ends with timed_out.
  long low_speed = 64;
  std::chrono::seconds low_speed_time{30};
};

class CurlTransport final : public Transport {
 public:
  /// `site` is scheme, host and optional port, no path. https is verified, TLS 1.2 or newer; redirects are not
  /// followed. Fails with invalid_argument for anything else, user names included.
  static Result<std::unique_ptr<CurlTransport>> create(const std::string& site, CurlOptions options);
  ~CurlTransport() override;

  /// Beside the interface's errors: invalid_argument for a request that cannot be written down safely (line breaks in
  /// a header, blanks in the target).
  void send(HttpRequest request, Deadline deadline, CancelToken cancel, Callback<HttpResponse> done) override;
  /// The number of connections; once an answer has come over HTTP/2, the streams that one of them may carry.
  [[nodiscard]] std::size_t width() const override;
  [[nodiscard]] const std::string& origin() const override;

 private:
  class Loop;
  CurlTransport(std::string origin, std::unique_ptr<Loop> loop);
  std::string origin_;
  std::unique_ptr<Loop> loop_;
};

}  // namespace playfs::net
