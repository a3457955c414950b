// How requests reach a service: over HTTP (CurlTransport), or in the same process (app/local_transport.h).
//
// A Transport speaks to one site. It does not retry and does not interpret: a response of any status is a success
// here. Implementations are thread-safe. The callback runs exactly once, on a thread of the transport's, and must
// not block; it may start further requests. Destroying a transport answers what is outstanding with `interrupted`.
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

  /// Errors: unreachable, timed_out, interrupted (cancelled), protocol (no HTTP, or larger than the ceiling).
  virtual void send(HttpRequest request, Deadline deadline, CancelToken cancel, Callback<HttpResponse> done) = 0;

  /// How many requests can be under way at once without waiting for each other in here; may grow with what is learnt
  /// of the site. Who has more of them, of different urgency, does better to keep the rest back himself.
  [[nodiscard]] virtual std::size_t width() const { return 64; }

  /// Scheme, host and port: what goes into the Origin header ("https://example.org", "http://127.0.0.1:8787").
  [[nodiscard]] virtual const std::string& origin() const = 0;
};

}  // namespace playfs::net
