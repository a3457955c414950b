// A transport that loses, answers or delays requests as a test decides, in front of a real one.
//
// Consults the plan for every request, one at a time, in sending order. Thread-safe. Keeps everything it carried for
// the test to inspect.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "net/transport.h"

namespace playfs::test {

/// What happens to one request.
struct Fault {
  enum class Kind {
    none,
    lose_request,  ///< never arrives; the sender gets `unreachable`
    lose_reply,    ///< carried out; the sender gets `timed_out`
    answer,        ///< not carried out; the sender gets `response`
    hang,          ///< never arrives; the sender gets `interrupted` once it gives up, and nothing before
  };
  Kind kind = Kind::none;
  HttpResponse response;
};
inline Fault lose_request() { return {Fault::Kind::lose_request, {}}; }
inline Fault lose_reply() { return {Fault::Kind::lose_reply, {}}; }
inline Fault hang() { return {Fault::Kind::hang, {}}; }
inline Fault answer_with(int status, std::string body) { return {Fault::Kind::answer, {status, {}, std::move(body)}}; }

struct Sent {
  HttpRequest request;
  int status = 0;  ///< of the response, even a lost one; 0 if the request never arrived
};

class FaultyTransport final : public net::Transport {
 public:
  using Plan = std::function<Fault(const HttpRequest&)>;

  explicit FaultyTransport(net::Transport& below) : below_(below) {}

  /// Empty: everything arrives. The plan may send requests of its own through other transports.
  void set_plan(Plan plan);
  /// Called when a response has arrived, before the sender gets it.
  void on_reply(std::function<void(const HttpRequest&)> heard);
  /// From now on nothing arrives, as if the machine were gone.
  void cut();
  [[nodiscard]] std::vector<Sent> sent() const;

  void send(HttpRequest request, net::Deadline deadline, CancelToken cancel, Callback<HttpResponse> done) override;
  [[nodiscard]] const std::string& origin() const override { return below_.origin(); }

 private:
  net::Transport& below_;
  mutable std::mutex planning_;  // one request at a time; taken before mutex_
  mutable std::mutex mutex_;
  Plan plan_;
  std::function<void(const HttpRequest&)> on_reply_;
  bool is_cut_ = false;
  std::vector<Sent> sent_;
  std::vector<CancelToken::Registration> hanging_;
};

}  // namespace playfs::test
