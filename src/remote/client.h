// Typed client for the Data API over a Transport: paths, headers, bodies, errors, retries.
//
// Thread-safe. Every call answers its callback exactly once, after the retries that the policy allows; delays use the
// Executor and block no thread. A 429 pauses all requests in its rate-limit bucket (reads, or writes to one collection)
// for the time the service requested. Callbacks run on a transport or executor thread and must not block. Cancelling
// answers `interrupted` at any stage, including delays. While the service is not responding, calls fail immediately
// with `unreachable`, except for probes.
//
// The transport, executor, clock and random must outlive the client. The destructor, which must not run in one of its
// callbacks, stops all sending: calls waiting to retry answer `interrupted` when due, or when the executor drops them.
// README.md defines what is repeated.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/callback.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/random.h"
#include "model/records.h"
#include "net/retry.h"
#include "net/transport.h"
#include "remote/breaker.h"
#include "remote/observed_limits.h"
#include "wire/records.h"

namespace playfs::remote {

struct ClientOptions {
  std::string base_path = "/.site/data";
  std::string api_key;  ///< sent as a bearer token; empty: none
  std::string account;  ///< whose key it is; empty: unknown
  net::RetryPolicy retry;
  net::Deadline deadline;  ///< of each attempt
  BreakerPolicy breaker;
  bool offline = false;  ///< fail everything with ErrorCode::offline, sending nothing
};

/// A call without an answer yet.
struct Unanswered {
  std::string what;  ///< "GET /.site/data/threads"
  std::chrono::nanoseconds waited{0};
  std::chrono::nanoseconds left{0};  ///< until it fails, apart from pauses that the service asks for
};

/// How the service has been responding lately, for status and limits.json.
struct Health {
  bool reachable = true;
  std::string last_error;
  std::optional<WallTime> last_success;
  std::optional<WallTime> last_failure;
  std::optional<WallTime> paused_until;  ///< by a rate limit
  std::uint64_t requests = 0;            ///< sent, including retries
};

/// The most records in a page: the largest limit that the service's documentation allows.
inline constexpr int kMostInPage = 100;

/// The result of a conditional GET.
template <class T>
struct Fetched {
  std::optional<T> value;  ///< absent: not modified since the given ETag
  std::string etag;        ///< empty if the service sends none
};

/// Asked before each attempt of a call, also before those that the client repeats by itself: what was true at the first
/// may not be true any more. An error ends the call. `in_doubt`: whether an earlier attempt may have been carried out.
/// Called on any thread, and must not block.
using Permit = std::function<void(bool in_doubt, const CancelToken& cancel, Callback<void> done)>;

/// Whose an API key is, as the site says.
struct KeyHolder {
  std::string email;  ///< may be empty
};

class Client {
 public:
  Client(net::Transport& transport, Executor& executor, const Clock& clock, Random& random, ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Reads. An id or collection that cannot be a path segment fails with not_found; a record with another id than
  // requested, or a response that is not JSON, with `protocol`.
  /// `subject`: what the record belongs to, such as its project, if known. Failures count for everything with the same
  /// subject, and for nothing else (breaker.h).
  void get_record(std::string collection, std::string id, CancelToken cancel, Callback<Record> done,
                  std::string subject = {});
  /// A page may exceed `limit`, since services clamp it by their own rules; above kMostInPage it fails with `protocol`.
  void list_records(std::string collection, int limit, std::string cursor, CancelToken cancel,
                    Callback<wire::RecordPage> done);
  void get_project(ProjectId id, std::string etag, CancelToken cancel, Callback<Fetched<Project>> done);

  /// What the site says of itself, at the base path: its collections, rules and further addresses.
  void get_description(CancelToken cancel, Callback<JsonObject> done);
  /// Whose the key is that requests are sent with. Errors: unauthorized, if the site refuses it; not_supported, if the
  /// site does not tell.
  void get_key_holder(CancelToken cancel, Callback<KeyHolder> done);
  /// A response without an end, at `target` of the site, with the client's usual headers. Sent once and whatever is
  /// known of pauses and outages: EventStream decides when.
  void stream(std::string target, HttpHeaders headers, net::StreamLimits limits, CancelToken cancel,
              net::StreamReceiver receiver);

  // Writes. A service answers an idempotency key again with the record that it made; a POST without one is sent once.
  /// `as`: the caller() to send it as. If that is no longer possible, it fails with `unauthorized`, and nothing is
  /// sent.
  void create_record(std::string collection, Json body, std::string idempotency_key, CancelToken cancel,
                     Callback<Record> done, std::optional<std::string> as = {}, Permit permit = {});
  void patch_record(std::string collection, std::string id, Json body, CancelToken cancel, Callback<Record> done,
                    Permit permit = {});
  /// The same, but sent immediately and at most once: fails with rate_limited during a pause or on a 429. For a value
  /// that may be outdated after a delay.
  void patch_record_now(std::string collection, std::string id, Json body, CancelToken cancel, Callback<Record> done);

  /// Any request, without retries or decoding, for `playfs api`. `target` is below the base path; the client's usual
  /// headers are added if missing. Fails with rate_limited during a pause.
  void raw(HttpRequest request, CancelToken cancel, Callback<HttpResponse> done);

  /// Replaces ClientOptions::api_key. A call that has begun keeps the key that it began with, in all its attempts: an
  /// Idempotency-Key belongs to its caller.
  void set_api_key(std::string key, std::string account = {});
  /// As whom the next call is sent: "account ADDRESS" or "key FINGERPRINT"; "" without a key. Services remember an
  /// Idempotency-Key for one caller. Never the key itself.
  [[nodiscard]] std::string caller() const;

  /// For somebody who waits for every read: from now on one that gets no answer fails after `longest`, if that is less
  /// than RetryPolicy::longest_call. Nothing is lost by it. Writes go on as before.
  void set_longest_read(std::chrono::seconds longest);
  /// For explicit user commands, which earlier responses should not hold up: paused buckets let calls through until one
  /// meets another 429, for at most a minute, and after an outage calls pass until it proves to continue.
  void ask_now();

  [[nodiscard]] Health health() const;
  /// The call that has waited longest; nullopt if none waits.
  [[nodiscard]] std::optional<Unanswered> unanswered() const;
  /// By rate-limit bucket: "" for reads, otherwise the collection written to.
  [[nodiscard]] std::map<std::string, ObservedLimit> limits() const;
  /// The transport's: how many requests can be in flight without delaying each other.
  [[nodiscard]] std::size_t width() const;
  /// Scheme, host and port.
  [[nodiscard]] const std::string& origin() const;
  /// Identifies the site in caches and credentials: the transport's origin plus the base path.
  [[nodiscard]] const std::string& site() const;

 private:
  std::shared_ptr<class CallEngine> engine_;
};

}  // namespace playfs::remote
