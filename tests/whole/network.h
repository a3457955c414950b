// The unreliable network between one process and the service, in simulated time: a seed decides what gets lost, doubled
// or late, not a test as in FaultyTransport. For one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "net/transport.h"
#include "service/service.h"
#include "whole/world.h"

namespace playfs::sim {

/// How bad the network is. Probabilities are per request.
struct Weather {
  double lose_request = 0, lose_reply = 0, duplicate = 0, linger = 0, refuse = 0, cut_body = 0;
  /// After the response to a POST was lost: the next attempts get an error that says nothing about the first.
  double spoil = 0;
};

/// Observes messages, or changes them to plant a fault.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void sends(HttpRequest&) {}
  /// The result is held until the request has arrived, on each arrival.
  virtual std::shared_ptr<void> departs(const HttpRequest&) { return nullptr; }
  /// The service is about to carry it out.
  virtual void arrives(const HttpRequest&) {}
  /// The service has carried it out. Headers set here arrive with the response.
  virtual void carried(const HttpRequest&, HttpResponse&) {}
  /// What the sender gets to see.
  virtual void receives(const HttpRequest&, HttpResponse&) {}
};

class SimulatedTransport final : public net::Transport {
 public:
  SimulatedTransport(World& world, const service::Service& service, std::string address, const Weather& weather,
                     Watcher& watcher)
      : world_(world), service_(service), address_(std::move(address)), weather_(weather), watcher_(watcher) {}
  ~SimulatedTransport() override { cut(); }

  void send(HttpRequest request, net::Deadline deadline, CancelToken cancel, Callback<HttpResponse> done) override;
  [[nodiscard]] const std::string& origin() const override { return origin_; }
  /// Stops sending. What is under way still arrives.
  void sever() { is_severed_ = true; }
  /// Call after sever(): answers all waiters with `interrupted`.
  void cut();

 private:
  struct Exchange;
  World& world_;
  const service::Service& service_;
  const std::string address_, origin_ = "local://simulated";
  const Weather& weather_;
  Watcher& watcher_;
  bool is_severed_ = false, is_cut_ = false;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::shared_ptr<Exchange>> exchanges_;
  struct Spoilt {
    int status = 0, times = 0;
  };
  std::map<std::string, Spoilt> spoilt_;  ///< by idempotency key
};

}  // namespace playfs::sim
