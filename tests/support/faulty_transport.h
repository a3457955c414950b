// A transport that loses, holds, answers or changes what a test decides, in front of a real service: for tests of all
// that lies above the transport, with threads and time as they are. (Without a service: scripted_transport.h. On one
// thread: FakeService of unit/content. In simulated time: whole/network.h. The wire itself: scripted_server.h.)
//
// Consults the plan for every request, one at a time, in sending order. Thread-safe. Keeps everything it carried for
// the test to inspect.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
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
    hang,          ///< held until open(); the sender gets `interrupted` once it gives up, and nothing before
  };
  Kind kind = Kind::none;
  HttpResponse response;
};
inline Fault lose_request() { return {Fault::Kind::lose_request, {}}; }
inline Fault lose_reply() { return {Fault::Kind::lose_reply, {}}; }
inline Fault hang() { return {Fault::Kind::hang, {}}; }
inline Fault answer_with(int status, std::string body) { return {Fault::Kind::answer, {status, {}, std::move(body)}}; }

inline bool is_post_of(const HttpRequest& request, std::string_view collection) {
  return request.method == "POST" && request.target.ends_with(collection);
}
inline bool is_post_of_revision(const HttpRequest& request) { return is_post_of(request, "/revisions"); }
inline bool is_list_of_revisions(const HttpRequest& request) {
  return request.method == "GET" && request.target.find("/revisions?") != std::string::npos;
}

struct Sent {
  HttpRequest request;
  int status = 0;  ///< of the response, even a lost one; 0 if the request never arrived
};

class FaultyTransport final : public net::Transport {
 public:
  using Plan = std::function<Fault(const HttpRequest&)>;

  explicit FaultyTransport(net::Transport& below);
  ~FaultyTransport() override;
  FaultyTransport(const FaultyTransport&) = delete;
  FaultyTransport& operator=(const FaultyTransport&) = delete;

  /// Empty: everything arrives. The plan may send requests of its own through other transports.
  void set_plan(Plan plan);
  /// Called when a response has arrived, before the sender gets it, on any thread. It may change the response.
  using Heard = std::function<void(const HttpRequest&, Result<HttpResponse>&)>;
  void on_reply(Heard heard);
  /// A plan: requests whose target contains `part` hang.
  void hold(std::string part);
  /// Ends the plan, and sends what hangs.
  void open();
  /// From now on nothing arrives, as if the machine were gone.
  void cut();
  [[nodiscard]] std::vector<Sent> sent() const;
  /// Number of requests sent whose target contains `part`.
  [[nodiscard]] int count(std::string_view part = {}) const;
  /// Number of requests that hung since the last open(), including those whose senders gave up.
  [[nodiscard]] int held() const;

  void send(HttpRequest request, net::Deadline deadline, CancelToken cancel, Callback<HttpResponse> done) override;
  [[nodiscard]] const std::string& origin() const override { return below_.origin(); }

 private:
  struct State;
  struct Held;
  void carry(std::size_t index, bool loses_reply, HttpRequest request, net::Deadline deadline, CancelToken cancel,
             Callback<HttpResponse> done);

  net::Transport& below_;
  const std::shared_ptr<State> state_;  ///< shared with requests below, which may be answered when this is gone
};

}  // namespace playfs::test
