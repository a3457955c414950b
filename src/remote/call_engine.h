// Shared by all calls of a client: sending, classification, retries, pauses, health. Internal to this module.
//
// Thread-safe. Whatever a call waits in (a transport or executor callback, a cancel hook) keeps it and the engine
// alive. The lock is held for bookkeeping only.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "base/gate.h"
#include "base/mutex.h"
#include "remote/calls_under_way.h"
#include "remote/client.h"
#include "remote/pause.h"

namespace playfs::remote {

/// Whether a failed attempt may be repeated.
enum class Repeat {
  freely,       ///< a read, or a write with an Idempotency-Key
  if_not_done,  ///< a write that the service certainly did not execute (429)
  never,
};

inline bool is_read(const HttpRequest& request) { return request.method == "GET" || request.method == "HEAD"; }

/// One call over all its attempts. At any time it is either with the transport or waiting.
struct Call {
  HttpRequest request;
  std::string bucket;   ///< its rate-limit bucket, the unit of pauses
  std::string subject;  ///< what it is about; other subjects' failures do not affect it (breaker.h)
  Repeat repeat = Repeat::never;
  bool judged = true;    ///< false: any response is returned as it is
  bool may_wait = true;  ///< false: fails immediately during a pause
  Permit permit;         ///< asked before each attempt; empty: none is needed
  CancelToken cancel;
  Callback<HttpResponse> done;
  int number = 1;
  bool in_doubt = false;  ///< a write that an earlier attempt may have executed
  std::chrono::nanoseconds paused{0};
  SteadyTime begun;    ///< start of the call
  SteadyTime sent_at;  ///< start of the current attempt
  std::shared_ptr<void> under_way;

  Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  /// Answers `interrupted` if still unanswered: an executor may drop waiting tasks.
  ~Call();
  void answer(Result<HttpResponse> result);
};
using CallPtr = std::shared_ptr<Call>;

/// Who sends.
struct Credentials {
  std::string api_key;
  std::string account;
};

class CallEngine : public std::enable_shared_from_this<CallEngine> {
 public:
  CallEngine(net::Transport& transport, Executor& executor, const Clock& clock, Random& random, ClientOptions options);

  void start(CallPtr call);
  /// Passed on as it is.
  void stream(HttpRequest request, net::StreamLimits limits, CancelToken cancel, net::StreamReceiver receiver);
  /// Answers from the executor, so that no callback runs inside the caller's own call.
  void reject(const CallPtr& call, Error error);
  /// Afterwards transport, executor, clock and random are no longer used.
  void close();
  /// See Client::ask_now.
  void ask_now();
  /// See Client::set_longest_read.
  void set_longest_read(std::chrono::seconds longest) { longest_read_ = longest; }
  void set_credentials(Credentials credentials);
  [[nodiscard]] Credentials credentials() const;
  [[nodiscard]] Health health() const;
  [[nodiscard]] std::optional<Unanswered> unanswered() const;
  [[nodiscard]] std::map<std::string, ObservedLimit> limits() const;
  [[nodiscard]] std::size_t width() const { return transport_.width(); }
  [[nodiscard]] const ClientOptions& options() const { return options_; }
  [[nodiscard]] const std::string& origin() const { return origin_; }
  [[nodiscard]] const std::string& site() const { return site_; }

  /// A random key, for a write whose caller provides none.
  std::string new_key() { return random_.uuid(); }

 private:
  /// Sends a new call, unless the service is not responding at all.
  void admit(const CallPtr& call);
  /// How long it may take without a response.
  [[nodiscard]] std::chrono::seconds longest(const HttpRequest& request) const;
  /// How long the call has taken, excluding rate-limit pauses.
  [[nodiscard]] std::chrono::nanoseconds tried(const Call& call) const;
  /// Asks for the permit first.
  void attempt(const CallPtr& call);
  /// Sends it, or waits for the end of a pause, after which the permit is asked for again.
  void transmit(const CallPtr& call);
  void on_response(const CallPtr& call, Result<HttpResponse> result);
  void wait(const CallPtr& call, std::chrono::nanoseconds delay, void (CallEngine::*then)(const CallPtr&));
  /// The error of an unsuccessful response; nullopt for a success.
  std::optional<Error> judge(const Call& call, const Result<HttpResponse>& result) const;
  void note(const Call& call, const Result<HttpResponse>& result, const std::optional<Error>& error);

  net::Transport& transport_;
  Executor& executor_;
  const Clock& clock_;
  Random& random_;
  const ClientOptions options_;
  const std::string origin_;
  const std::string site_;

  std::atomic<std::chrono::seconds> longest_read_;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  const std::shared_ptr<CallsUnderWay> under_way_ = std::make_shared<CallsUnderWay>();
  mutable Mutex mutex_;
  Credentials credentials_ PLAYFS_GUARDED_BY(mutex_);
  Breaker breaker_ PLAYFS_GUARDED_BY(mutex_);
  Health health_ PLAYFS_GUARDED_BY(mutex_);
  ObservedLimits limits_ PLAYFS_GUARDED_BY(mutex_);
  std::map<std::string, Pause> pauses_ PLAYFS_GUARDED_BY(mutex_);  // by rate-limit bucket
};

}  // namespace playfs::remote
