// The Agent Playground Data API as a function from request to response. No sockets: http/ calls it for the network,
// runtime/local_transport.h for a mount that hosts its playground in its own process.
//
// Thread-safe. handle() may block on the store (a commit to disk, other processes' writes), so call it on a worker
// thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/http.h"
#include "base/result.h"
#include "service/accounts.h"
#include "service/change_feed.h"
#include "service/client_address.h"
#include "service/collections.h"
#include "service/identity.h"
#include "service/problem.h"
#include "service/sign_in.h"
#include "service/site_hosts.h"
#include "service/store.h"
#include "service/target.h"
#include "service/write_limits.h"

namespace playfs::service {

struct ServiceOptions {
  std::string base_path = "/.site/data";
  std::vector<std::string>
      site_hosts;           ///< names the site is reached by, see SiteHosts; addresses and localhost always are
  std::string docs_url;     ///< added to error objects; empty: none
  Limits limits;            ///< none by default
  TrustedProxies proxies;   ///< whose X-Forwarded-For is trusted
  std::string steward_key;  ///< the bearer key of the domain steward; empty: there is none
};

/// What the connection tells about the sender of a request.
struct Caller {
  std::string address;  ///< numeric, of the peer; "local" in the same process
};

/// The answer to a request for events. If it has a position, the body goes on with the changes after it, for as long as
/// the client listens.
struct Watch {
  HttpResponse response;
  std::optional<Position> after;
};

/// Large enough for any record: 16 KB with every byte escaped, plus some white space.
inline constexpr std::size_t kMaxBodySize = 128 * 1024;

class Service {
 public:
  /// The arguments must outlive the service. Without `sign_in`, its paths do not exist; without `feed`, there are no
  /// events.
  Service(Store& store, Accounts& accounts, ServiceOptions options, const SignIn* sign_in = nullptr,
          ChangeFeed* feed = nullptr);

  /// Events end after the greeting here, as if the connection were lost.
  HttpResponse handle(const HttpRequest& request, const Caller& caller) const;

  /// Whether a request is for events: those who can send an answer without an end pass it to watch().
  [[nodiscard]] bool is_watch(const HttpRequest& request) const;
  [[nodiscard]] Watch watch(const HttpRequest& request) const;

 private:
  HttpResponse route(const HttpRequest& request, const Caller& caller) const;
  Watch route_events(const Target& target, const HttpRequest& request) const;
  HttpResponse route_sign_in(const std::vector<std::string>& segments, const HttpRequest& request,
                             const Caller& caller) const;
  HttpResponse route_root(const HttpRequest& request) const;
  HttpResponse route_collection(const Collection& collection, const Target& target, const HttpRequest& request,
                                const Caller& caller) const;
  HttpResponse route_record(const Collection& collection, const std::string& id, const HttpRequest& request,
                            const Caller& caller) const;
  Result<HttpResponse> capabilities(const HttpRequest& request) const;
  Result<HttpResponse> list(const Collection& collection, const Target& target, const HttpRequest& request) const;
  Result<HttpResponse> get(const Collection& collection, const std::string& id, const HttpRequest& request) const;
  Result<HttpResponse> create(const Collection& collection, const HttpRequest& request, const Caller& caller) const;
  Result<HttpResponse> patch(const Collection& collection, const std::string& id, const HttpRequest& request,
                             const Caller& caller) const;
  [[nodiscard]] std::string counted_client(const HttpRequest& request, const Caller& caller) const;
  [[nodiscard]] std::optional<Charge> charge_for(const Collection& collection, const std::string& client) const;
  /// The response, or the error as one.
  [[nodiscard]] HttpResponse answer(Result<HttpResponse> result) const;
  /// Reads are allowed from pages of other sites if the site is public.
  [[nodiscard]] bool is_public(const HttpRequest& request) const;
  [[nodiscard]] HttpResponse readable(Result<HttpResponse> result, const HttpRequest& request) const;
  /// Refuses a request because of its contents; `details` names the offending part.
  [[nodiscard]] HttpResponse refuse(const Error& error, JsonObject details) const;
  [[nodiscard]] HttpResponse refuse(int status, std::string code, std::string message, std::string allow = {}) const;

  /// Tells the feed of a write.
  void has_written() const;

  Store& store_;
  const SignIn* sign_in_;
  ChangeFeed* const feed_;
  const ServiceOptions options_;
  const std::string events_path_;  ///< beside the collections; empty: there are no events
  const SiteHosts site_;
  const Gatekeeper gatekeeper_;
};

}  // namespace playfs::service
