// Delivers requests to a service: over HTTP (CurlTransport) or within the process (runtime/local_transport.h).
//
// A Transport serves one site. It neither retries nor interprets: a response of any status is a success here.
// Implementations are thread-safe. The callback runs exactly once, on a thread of the transport, and must not block; it
// may start further requests. The destructor answers outstanding requests with `interrupted`.
#pragma once

#include <chrono>
#include <cstddef>

#include <string_view>

#include "base/callback.h"
#include "base/cancel.h"
#include "base/http.h"

namespace playfs::net {

struct Deadline {
  std::chrono::milliseconds connect{10'000};
  std::chrono::milliseconds total{60'000};  ///< from send to the last byte; the transport also gives up on a stall
};

/// Limits of a response that has no end.
struct StreamLimits {
  std::chrono::milliseconds connect{10'000};
  std::chrono::milliseconds silence{45'000};  ///< the longest time without a byte, from send on
};

/// Receives a response piece by piece, on a thread of the transport, which must not be blocked. The first two return
/// whether to go on; otherwise the stream ends with `interrupted`.
struct StreamReceiver {
  UniqueFunction<bool(const HttpResponse&)> begun;  ///< once, before any piece: status and headers, without a body
  UniqueFunction<bool(std::string_view)> piece;     ///< some of the body, at most 64 KiB; valid during the call
  Callback<void> ended;                             ///< exactly once, last; a success is the regular end of the body
};

class Transport {
 public:
  virtual ~Transport() = default;

  /// Errors: unreachable, timed_out, interrupted (cancelled), protocol (not HTTP, or above the size limit).
  virtual void send(HttpRequest request, Deadline deadline, CancelToken cancel, Callback<HttpResponse> done) = 0;

  /// Sends a GET whose response may last for as long as both sides like. Not counted in width(). Errors: those of
  /// send(), timed_out also after too long a silence; not_supported where the transport has no such thing.
  virtual void stream(HttpRequest request, StreamLimits limits, CancelToken cancel, StreamReceiver receiver);

  /// How many requests can be in flight without delaying each other; may change as the transport learns about the site.
  /// A caller with more should queue the rest itself, by urgency.
  [[nodiscard]] virtual std::size_t width() const { return 64; }

  /// Scheme, host and port, as in the Origin header ("https://example.org", "http://127.0.0.1:8787").
  [[nodiscard]] virtual const std::string& origin() const = 0;
};

inline void Transport::stream(HttpRequest, StreamLimits, CancelToken, StreamReceiver receiver) {
  receiver.ended(fail(ErrorCode::not_supported, "this connection carries no events"));
}

}  // namespace playfs::net
