// The Agent Playground Data API as a function from request to response. No sockets: http/ calls it for the network,
// runtime/local_transport.h for a mount that hosts its playground in its own process.
//
// Thread-safe. handle() may block on the store (a commit to disk, other processes' writes), so call it on a worker
// thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <vector>

#include "base/http.h"
#include "base/result.h"
#include "service/accounts.h"
#include "service/change_feed.h"
#include "service/client_address.h"
#include "service/collections.h"
#include "service/description.h"
#include "service/identity.h"
#include "service/operations.h"
#include "service/problem.h"
#include "service/record_export.h"
#include "service/sign_in.h"
#include "service/site_hosts.h"
#include "service/store.h"
#include "service/target.h"
#include "service/write_limits.h"

namespace playfs::service {

struct ServiceOptions {
  std::string base_path = "/.site/data";
  std::vector<std::string>
      site_hosts;              ///< names the site is reached by, see SiteHosts; addresses and localhost always are
  std::string docs_url;        ///< added to error objects; empty: none
  Limits limits;               ///< none by default
  TrustedProxies proxies;      ///< whose X-Forwarded-For is trusted
  std::string steward_key;     ///< the bearer key of the domain steward; empty: there is none
  std::string software;        ///< name and version of this program, for the capability manifest; empty: left out
  JsonObject other_abilities;  ///< of what else serves this site, for the same
};

/// What the connection reveals about the sender of a request.
struct Caller {
  std::string address;  ///< numeric, of the peer; "local" in the same process
};

/// The answer to a request for events. If it has a position, the body goes on with the changes after it, for as long as
/// the client listens.
struct Watch {
  HttpResponse response;
  std::optional<Position> after;
};

/// The answer to a request for an export. If it has a rest, that is its body.
struct Export {
  HttpResponse response;
  std::unique_ptr<RecordExport> rest;
};

/// How many bodies of writes are parsed at once. Each may take megabytes until it is the text that is stored; many more
/// writes wait for the disk together, with only their texts.
inline constexpr std::ptrdiff_t kMostBodies = 16;
using Bodies = std::counting_semaphore<kMostBodies>;

class Service {
 public:
  /// The arguments must outlive the service. Without `sign_in`, its paths do not exist; without `feed`, there are no
  /// events.
  Service(Store& store, Accounts& accounts, ServiceOptions options, const SignIn* sign_in = nullptr,
          ChangeFeed* feed = nullptr);

  /// Events end after the greeting here, and an export after its first part, as if the connection were lost.
  HttpResponse handle(const HttpRequest& request, const Caller& caller) const;

  /// Whether a request is for events: those who can send an answer without an end pass it to watch().
  [[nodiscard]] bool is_watch(const HttpRequest& request) const;
  [[nodiscard]] Watch watch(const HttpRequest& request) const;

  /// Whether a request is for an export: those who can send an answer part by part pass it to export_records().
  [[nodiscard]] bool is_export(const HttpRequest& request) const;
  [[nodiscard]] Export export_records(const HttpRequest& request) const;

 private:
  /// What a request asks for.
  struct Asked {
    Target target;
    Route route;
    const Operation* operation = nullptr;
  };
  /// Finds what is asked for; otherwise returns the error response.
  std::optional<HttpResponse> look_up(const HttpRequest& request, Asked& asked) const;
  HttpResponse perform(const Asked& asked, const HttpRequest& request, const Caller& caller) const;
  HttpResponse perform_on_list(const Asked& asked, const HttpRequest& request, const Caller& caller) const;
  HttpResponse first_part(Export exported) const;
  Watch begin_watch(const Target& target, const HttpRequest& request) const;
  Export begin_export(const Asked& asked, const HttpRequest& request) const;
  [[nodiscard]] bool is_at(const HttpRequest& request, Place place) const;
  [[nodiscard]] Offer offer() const;
  HttpResponse document(JsonObject body, const HttpRequest& request) const;
  Result<HttpResponse> list(const Collection& collection, const Target& target, const HttpRequest& request) const;
  Result<HttpResponse> get(const Collection& collection, const std::string& id, const HttpRequest& request) const;
  /// Whose the key of the request is. Errors: unauthorized, also without a key.
  Result<HttpResponse> key_holder(const HttpRequest& request) const;
  Result<HttpResponse> create(const Collection& collection, const HttpRequest& request, const Caller& caller) const;
  /// Of a new record; otherwise the response that refuses them.
  std::optional<HttpResponse> read_contents(const Collection& collection, const HttpRequest& request,
                                            const Identity& who, Contents& contents) const;
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

  /// Call after a write: the feed looks for it at once.
  void has_written() const;

  Store& store_;
  Accounts& accounts_;
  const SignIn* sign_in_;
  ChangeFeed* const feed_;
  const ServiceOptions options_;
  const Paths paths_;
  const SiteHosts site_;
  const Gatekeeper gatekeeper_;
  mutable Bodies bodies_{kMostBodies};
};

}  // namespace playfs::service
