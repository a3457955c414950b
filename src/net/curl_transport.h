// HTTP over libcurl's multi interface: one I/O thread, connection reuse, HTTP/2 if offered.
//
// Thread-safe like every Transport. Callbacks run on the I/O thread, so the destructor must not run there. Proxies come
// from the environment as in curl, but are never used for loopback hosts. libcurl is loaded, and the thread started, by
// the first request: many commands send none.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "net/transport.h"

namespace playfs::net {

struct CurlOptions {
  std::string ca_file = {};  ///< private certificate authority, PEM; empty: the system's
  std::string user_agent = "playfs";
  std::size_t response_ceiling = 4 << 20;  ///< bytes of a response body after decompression
  /// Requests in flight over HTTP/1.1, each on its own connection, for a caller that has many.
  long width = 64;
  /// Total limit, so that hanging requests leave connections for others. Normally not reached, see README.md.
  long max_connections = 320;
  /// A transfer slower than `low_speed` bytes per second for `low_speed_time` has stalled and fails with timed_out.
  long low_speed = 64;
  std::chrono::seconds low_speed_time{30};
};

class CurlTransport final : public Transport {
 public:
  /// `site` is scheme, host and optional port, without a path. Certificates are verified, TLS is 1.2 or newer, and
  /// redirects are not followed. Fails with invalid_argument for any other form, including user names.
  static Result<std::unique_ptr<CurlTransport>> create(const std::string& site, CurlOptions options);
  ~CurlTransport() override;

  /// Loads libcurl, which the first request would otherwise do: for what runs on.
  static Status load_library();

  /// In addition to the interface's errors, fails with invalid_argument for a request that cannot be sent safely (line
  /// breaks in a header, blanks in the target).
  void send(HttpRequest request, Deadline deadline, CancelToken cancel, Callback<HttpResponse> done) override;
  void stream(HttpRequest request, StreamLimits limits, CancelToken cancel, StreamReceiver receiver) override;
  /// CurlOptions::width, or after an HTTP/2 response the number of streams per connection.
  [[nodiscard]] std::size_t width() const override;
  [[nodiscard]] const std::string& origin() const override;

 private:
  class Loop;
  CurlTransport(std::string origin, CurlOptions options);
  /// Fails if libcurl cannot be loaded or set up.
  [[nodiscard]] Result<Loop*> loop();

  const std::string origin_;
  const CurlOptions options_;
  std::once_flag begun_;
  std::unique_ptr<Loop> loop_;
  std::atomic<const Loop*> known_ = nullptr;  ///< loop_, once begun
};

}  // namespace playfs::net
