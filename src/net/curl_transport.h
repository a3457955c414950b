// HTTP over libcurl's multi interface: one I/O thread, connections kept and reused, HTTP/2 where it is offered.
#pragma once

#include <memory>
#include <string>

#include "net/transport.h"

namespace playfs::net {

struct CurlOptions {
  std::string ca_file;                     ///< own certificate authority, PEM; empty: the system's
  std::string user_agent = "playfs";
  std::size_t response_ceiling = 4 << 20;  ///< bytes of a response body, after inflation
  long max_connections = 64;
};

class CurlTransport final : public Transport {
 public:
  /// `site` is scheme, host and optional port, no path. https is verified, TLS 1.2 or newer; redirects are not
  /// followed. Fails with invalid_argument for anything but http and https.
  static Result<std::unique_ptr<CurlTransport>> create(const std::string& site, CurlOptions options);
  ~CurlTransport() override;

  void send(HttpRequest request, Deadline deadline, CancelToken cancel, Callback<HttpResponse> done) override;
  [[nodiscard]] const std::string& origin() const override;

 private:
  class Loop;
  CurlTransport(std::string origin, std::unique_ptr<Loop> loop);
  std::string origin_;
  std::unique_ptr<Loop> loop_;
};

}  // namespace playfs::net
