// A transport to a service in the same process, for a mount that hosts its own playground.
//
// Requests go through the same service code as those from the network, on one of the executor's threads, so that the
// sender never blocks. No connection can be lost, and only the store could stall, which has its own time limit, so
// deadlines are not enforced. Thread-safe. A stream's receiver may be called for a moment longer than the transport
// lives.
#pragma once

#include <memory>
#include <string>

#include "base/executor.h"
#include "net/transport.h"
#include "service/change_feed.h"
#include "service/service.h"

namespace playfs::runtime {

class LocalTransport final : public net::Transport {
 public:
  /// `site_id` names the playground (Store::site_id); the service must accept it as a site host. Service and executor
  /// must outlive the transport, and so must the feed. Without `feed`, there are no events.
  LocalTransport(const service::Service& service, const std::string& site_id, Executor& executor,
                 service::ChangeFeed* feed = nullptr);
  /// Waits for calls inside the service; everything else outstanding is answered with `interrupted`.
  ~LocalTransport() override;
  LocalTransport(const LocalTransport&) = delete;
  LocalTransport& operator=(const LocalTransport&) = delete;

  void send(HttpRequest request, net::Deadline deadline, CancelToken cancel, Callback<HttpResponse> done) override;

  /// No limit is enforced: the feed is never silent for long.
  void stream(HttpRequest request, net::StreamLimits limits, CancelToken cancel, net::StreamReceiver receiver) override;

  /// "local://SITE_ID", wherever the playground's directory is.
  [[nodiscard]] const std::string& origin() const override { return origin_; }

 private:
  class Core;
  const std::string origin_;
  Executor& executor_;
  std::shared_ptr<Core> core_;
};

}  // namespace playfs::runtime
