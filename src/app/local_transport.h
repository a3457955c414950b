// Requests to a service in the same process: the road from a mount to the playground that it carries.
//
// The request goes through the same service code as one from the network, on one of the executor's threads, so that
// the sender is never blocked. There is no connection to lose and nothing that could stall but the store, which
// has a limit of its own, so deadlines are not watched. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "base/executor.h"
#include "net/transport.h"
#include "service/service.h"

namespace playfs::app {

class LocalTransport final : public net::Transport {
 public:
  /// `site_id` names the playground (Store::site_id); the service must know it as a site host. Service and executor
  /// must outlive the transport.
  LocalTransport(const service::Service& service, const std::string& site_id, Executor& executor);
  /// Waits for calls that are inside the service; everything outstanding is answered with `interrupted`.
  ~LocalTransport() override;
  LocalTransport(const LocalTransport&) = delete;
  LocalTransport& operator=(const LocalTransport&) = delete;

  void send(HttpRequest request, net::Deadline deadline, CancelToken cancel, Callback<HttpResponse> done) override;

  /// "local://SITE_ID", wherever the playground's directory lies.
  [[nodiscard]] const std::string& origin() const override { return origin_; }

 private:
  class Core;
  const std::string origin_;
  Executor& executor_;
  std::shared_ptr<Core> core_;
};

}  // namespace playfs::app
