#include "whole/network.h"

#include <array>
#include <utility>

#include "net/curl_transport.h"

namespace playfs::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct SimulatedTransport::Exchange {
  HttpRequest request;
  Callback<HttpResponse> done;
  SimulatedTransport* transport = nullptr;
  std::uint64_t number = 0;
  CancelToken::Registration on_cancel;
  bool is_answered = false;

  void answer(Result<HttpResponse> response) {
    if (std::exchange(is_answered, true)) return;
    if (transport && transport->world_.is_traced)
      transport->world_.say(transport->address_, " hears of ", request.method, " ", request.target, ": ",
                            response ? std::to_string(response->status) : response.error().message);
    if (transport) {
      transport->exchanges_.erase(number);
      if (response) transport->watcher_.receives(request, *response);
    }
    transport = nullptr;
    done(std::move(response));
    done = {};
    on_cancel = {};
  }
};

void SimulatedTransport::cut() {
  is_severed_ = is_cut_ = true;
  while (!exchanges_.empty()) {
    auto exchange = exchanges_.begin()->second;
    exchanges_.erase(exchanges_.begin());
    exchange->transport = nullptr;
    exchange->answer(fail(ErrorCode::interrupted, "the line was cut"));
  }
}

void SimulatedTransport::send(HttpRequest request, net::Deadline, CancelToken cancel, Callback<HttpResponse> done) {
  if (is_cut_) return done(fail(ErrorCode::interrupted, "the line was cut"));
  auto& random = world_.random;
  auto latency = [&] { return nanoseconds(milliseconds(1 + random.below(80))); };
  auto exchange = std::make_shared<Exchange>();
  exchange->request = std::move(request);
  exchange->request.headers.set("Host", "simulated");
  exchange->done = std::move(done);
  exchange->transport = this;
  exchange->number = ++last_;
  exchanges_.emplace(exchange->number, exchange);
  if (is_severed_) return;
  watcher_.sends(exchange->request);
  if (world_.is_traced)
    world_.say(address_, " sends ", exchange->request.method, " ", exchange->request.target, " ",
               exchange->request.body.substr(0, 150));

  std::string key(exchange->request.headers.get("Idempotency-Key").value_or(""));
  auto spoilt = spoilt_.find(key);
  if (weather_.spoil > 0 && spoilt != spoilt_.end() && spoilt->second.times-- > 0) {
    world_.say(address_, " is answered ", spoilt->second.status, ": ", exchange->request.target);
    HttpResponse response{spoilt->second.status, {}, R"({"error":"no","code":"no","message":"no"})"};
    world_.at(latency(), [exchange, response] { exchange->answer(response); });
    return;
  }
  bool is_refused = random.chance(weather_.refuse);
  bool is_refused_before = is_refused && random.chance(0.5);  // otherwise it was carried out, and the response says 503
  bool loses_reply = random.chance(weather_.lose_reply);
  bool cuts = random.chance(weather_.cut_body);
  if (!key.empty() && (loses_reply || is_refused || cuts) && random.chance(weather_.spoil)) {
    constexpr std::array kStatuses{401, 403, 404, 409, 423, 425};
    // Also for longer than a publisher waits for late requests.
    const int times = random.chance(0.3) ? 100 : 1 + static_cast<int>(random.below(3));
    spoilt_[key] = {kStatuses[random.below(kStatuses.size())], times};
  }
  // Some linger in the network for longer than their sender waits; but no longer than a publisher allows for
  // (PublicationEngine::Parts::late_arrival) if it may have to report that a request was not carried out.
  const bool may_be_refused = weather_.spoil > 0;
  nanoseconds there =
      random.chance(weather_.linger) ? nanoseconds(seconds(random.below(may_be_refused ? 60 : 300))) : latency();
  auto owner = world_.owner();
  // Requests under way arrive even if their sender is gone.
  auto arrive = [&world = world_, &service = service_, address = address_, &watcher = watcher_, exchange, is_refused,
                 is_refused_before, loses_reply, cuts, owner,
                 on_its_way = watcher_.departs(exchange->request)](nanoseconds back) {
    HttpResponse response;
    if (!is_refused_before) {
      watcher.arrives(exchange->request);
      response = service.handle(exchange->request, {address});
      watcher.carried(exchange->request, response);
    }
    if (is_refused) response = {503, {}, R"({"error":"unavailable","code":"unavailable","message":"later"})"};
    if (cuts && !response.body.empty()) response.body.resize(world.random.below(response.body.size()));
    if (loses_reply) return;
    world.at(
        back, [exchange, response = std::move(response)] { exchange->answer(response); }, owner);
  };
  if (!random.chance(weather_.lose_request))
    world_.at(
        there, [arrive, back = latency()] { arrive(back); }, nullptr);
  if (random.chance(weather_.duplicate))
    world_.at(
        there + nanoseconds(seconds(random.below(may_be_refused ? 50 : 60))),
        [arrive, back = latency()] { arrive(back); }, nullptr);
  // As long as the real transport waits, so that one call may try twice.
  world_.at(net::CurlOptions().low_speed_time,
            [exchange] { exchange->answer(fail(ErrorCode::timed_out, "no answer came")); });
  exchange->on_cancel = cancel.on_cancel([weak = std::weak_ptr(exchange)] {
    if (auto exchange = weak.lock()) exchange->answer(fail(ErrorCode::interrupted, "cancelled"));
  });
}

}  // namespace playfs::sim
