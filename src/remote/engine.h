// What all calls of a client share: sending, judging answers, repeating, pauses, health. For the room's own use.
//
// Thread-safe. Engine and calls are kept alive by whatever they wait in (a transport's or an executor's callback, a
// cancel hook). Its lock is held for bookkeeping only.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "remote/client.h"
#include "remote/pause.h"

namespace playfs::remote {

/// What may be done about a failed attempt.
enum class Repeat {
  freely,       ///< a read, or a write with an Idempotency-Key
  if_not_done,  ///< a write that the service is known not to have carried out (429)
  never,
};

inline bool is_read(const HttpRequest& request) { return request.method == "GET" || request.method == "HEAD"; }

/// One call through all its attempts. It is in one place at a time: with the transport, or waiting.
struct Call {
  HttpRequest request;
  std::string lane;     ///< the kind of request that a pause holds for
  std::string subject;  ///< what it is about: another one's silence says nothing of it (breaker.h)
  Repeat repeat = Repeat::never;
  bool judged = true;    ///< false: any response is the answer, as it is
  bool may_wait = true;  ///< false: answered at once where a pause is on
  CancelToken cancel;
  Callback<HttpResponse> done;
  int number = 1;
  bool in_doubt = false;  ///< a write that an earlier attempt may have carried out
  std::chrono::nanoseconds paused{0};
  SteadyTime begun;    ///< when it was started
  SteadyTime sent_at;  ///< when its present attempt was

  Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  /// Answers `interrupted` where nobody has answered: an executor may drop what waits in it.
  ~Call();
  void answer(Result<HttpResponse> result);
};
using CallPtr = std::shared_ptr<Call>;

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  Engine(net::Transport& transport, Executor& executor, const Clock& clock, Random& random, ClientOptions options);

  void start(CallPtr call);
  /// Answers from the executor, so that no caller is called back from within its own call.
  void reject(const CallPtr& call, Error error);
  /// After this neither transport nor executor, clock or random is used any more.
  void close();
  /// Lets the next call of each paused lane through.
  void ask_now();
  [[nodiscard]] Health health() const;
  [[nodiscard]] std::map<std::string, ObservedLimit> limits() const;
  [[nodiscard]] std::size_t width() const { return transport_.width(); }
  [[nodiscard]] const ClientOptions& options() const { return options_; }
  [[nodiscard]] const std::string& origin() const { return origin_; }
  [[nodiscard]] const std::string& site() const { return site_; }

  /// A random key for a write that the caller gave none.
  std::string new_key() { return random_.uuid(); }

 private:
  /// Holds off close() while it lives; false once the engine is closed.
  class Use {
   public:
    explicit Use(Engine& engine);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    explicit operator bool() const { return open_; }

   private:
    Engine& engine_;
    bool open_;
  };

  /// Sends a new call, unless the service does not answer anybody.
  void admit(const CallPtr& call);
  /// How long the call has gone on, without what it sat out.
  [[nodiscard]] std::chrono::nanoseconds tried(const Call& call) const;
  void attempt(const CallPtr& call);
  void on_response(const CallPtr& call, Result<HttpResponse> result);
  void wait(const CallPtr& call, std::chrono::nanoseconds delay, void (Engine::*then)(const CallPtr&));
  /// The error of an answer that is no success; nullopt for one that is.
  std::optional<Error> judge(const Call& call, const Result<HttpResponse>& result) const;
  void note(const Call& call, const Result<HttpResponse>& result, const std::optional<Error>& error);

  net::Transport& transport_;
  Executor& executor_;
  const Clock& clock_;
  Random& random_;
  const ClientOptions options_;
  const std::string origin_;
  const std::string site_;

  mutable Mutex mutex_;
  Condition idle_;
  bool closed_ PLAYFS_GUARDED_BY(mutex_) = false;
  int users_ PLAYFS_GUARDED_BY(mutex_) = 0;
  Breaker breaker_ PLAYFS_GUARDED_BY(mutex_);
  Health health_ PLAYFS_GUARDED_BY(mutex_);
  ObservedLimits limits_ PLAYFS_GUARDED_BY(mutex_);
  std::map<std::string, Pause> pauses_ PLAYFS_GUARDED_BY(mutex_);  // by lane
};

}  // namespace playfs::remote
