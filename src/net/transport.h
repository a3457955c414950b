// Delivers requests to a service: over HTTP (CurlTransport) or within the process (runtime/local_transport.h).
//
// A Transport serves one site. It neither retries nor interprets: a response of any status is a success here.
// Implementations are thread-safe. The callback runs exactly once, on a thread of the transport, and must not block; it
// may start further requests. The destructor answers outstanding requests with `interrupted`.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/callback.h"
#include "base/cancel.h"
#include "base/http.h"

namespace playfs::net {

struct Deadline {
  std::chrono::milliseconds connect{10'000};
  std::chrono::milliseconds total{60'000};  ///< from send to the last byte; the transport also gives up on a stall
};

class Transport {
 public:
  virtual ~Transport() = default;

  /// Errors: unreachable, timed_out, interrupted (cancelled), protocol (not HTTP, or above the size limit).
  virtual void send(HttpRequest request, Deadline deadline, CancelToken cancel, Callback<HttpResponse> done) = 0;

  /// How many requests can be in flight without delaying each other; may change as the transport learns about the site.
  /// A caller with more should queue the rest itself, by urgency.
  [[nodiscard]] virtual std::size_t width() const { return 64; }

  /// Scheme, host and port, as in the Origin header ("https://example.org", "http://127.0.0.1:8787").
  [[nodiscard]] virtual const std::string& origin() const = 0;
};

}  // namespace playfs::net
