// The Data API as a typed client over a Transport: paths, headers, bodies, errors, retries.
//
// Thread-safe. Every call answers its callback exactly once, after the retries that the policy allows; waiting goes
// through the Executor, never through a sleeping thread. A 429 pauses all requests of its kind (reads; writes to one
// collection) until the service's time is over. Callbacks run on a thread of the transport's or the executor's and
// must not block. Cancelling answers `interrupted` at any stage, waiting included. While the service does not answer at
// all, calls fail with `unreachable` at once, but for some that find out whether it is back.
//
// The transport, executor, clock and random must outlive the client. Destroying it, not from a callback of its own,
// sends nothing more: calls that wait to try again answer `interrupted` when their time comes or the executor drops
// them. What README.md beside this file says about repeating holds for all of them.
#pragma once

#include <chrono>
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
  net::RetryPolicy retry;
  net::Deadline deadline;  ///< of each attempt
  BreakerPolicy breaker;
  bool offline = false;  ///< answer everything with ErrorCode::offline, sending nothing
};

/// How the service's answers have been lately, for status and limits.json.
struct Health {
  bool reachable = true;
  std::string last_error;
  std::optional<WallTime> last_success;
  std::optional<WallTime> last_failure;
  std::optional<WallTime> paused_until;  ///< rate limited
  std::uint64_t requests = 0;            ///< sent, retries included
};

/// How many records a page may have: the most that the service's document lets a client ask for.
inline constexpr int kMostInPage = 100;

/// An answer to a conditional GET.
template <class T>
struct Fetched {
  std::optional<T> value;  ///< absent: not modified since the ETag that was sent
  std::string etag;        ///< empty where the service gives none
};

class Client {
 public:
  Client(net::Transport& transport, Executor& executor, const Clock& clock, Random& random, ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Reads. An id or collection that cannot be part of a path answers not_found; a record of another id than the one
  // asked for, or an answer that is no JSON, `protocol`.
  /// `subject`: what it is part of, its project say, where that is known: what one of them meets says something of the
  /// others of it, and nothing of other records (breaker.h).
  void get_record(std::string collection, std::string id, CancelToken cancel, Callback<Record> done,
                  std::string subject = {});
  /// A page of more records than `limit` is tolerated, since a service may clamp it by rules of its own; one of more
  /// than kMostInPage answers `protocol`.
  void list_records(std::string collection, int limit, std::string cursor, CancelToken cancel,
                    Callback<wire::RecordPage> done);
  void get_project(ProjectId id, std::string etag, CancelToken cancel, Callback<Fetched<Project>> done);
  void get_revision(RevisionId id, CancelToken cancel, Callback<Revision> done);
  void get_chunk(ChunkId id, CancelToken cancel, Callback<FileChunk> done);

  // Writes. The same idempotency key must always go with the same body; without one a POST is sent once.
  void create_record(std::string collection, Json body, std::string idempotency_key, CancelToken cancel,
                     Callback<Record> done);
  void patch_record(std::string collection, std::string id, Json body, CancelToken cancel, Callback<Record> done);
  /// The same, sent at once and once or not at all: a pause, or a 429, is answered with rate_limited. For a value that
  /// is right now and may not be any more after a wait.
  void patch_record_now(std::string collection, std::string id, Json body, CancelToken cancel, Callback<Record> done);

  /// Any call, unretried and undecoded, for `playfs api`. `target` goes below the base path; headers that a call of
  /// this client would have are added where they are missing. Answers rate_limited at once during a pause.
  void raw(HttpRequest request, CancelToken cancel, Callback<HttpResponse> done);

  /// Somebody asks for something by name, and does not want to hear of what the service said a while ago: during a
  /// pause, the next call of each kind is sent all the same, and ends the pause where it is answered. After an outage
  /// nobody is refused until it proves to go on.
  void ask_now();

  [[nodiscard]] Health health() const;
  /// By kind of request: "" for reads, otherwise the writes of a collection.
  [[nodiscard]] std::map<std::string, ObservedLimit> limits() const;
  /// The transport's: how many requests may be under way at once without waiting for each other.
  [[nodiscard]] std::size_t width() const;
  /// Names the site in caches and credentials: the transport's origin plus the base path.
  [[nodiscard]] const std::string& site() const;

 private:
  std::shared_ptr<class Engine> engine_;
};

}  // namespace playfs::remote
