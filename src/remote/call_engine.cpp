#include "remote/call_engine.h"

#include <algorithm>
#include <atomic>

#include <fmt/format.h>

#include "remote/retry_after.h"

namespace playfs::remote {

namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

Error interrupted(std::string why) { return Error{ErrorCode::interrupted, std::move(why)}; }

/// The pause after a 429 that names no time.
constexpr seconds kPauseUnasked{1};
/// The delay before asking a busy breaker again.
constexpr std::chrono::milliseconds kMoment{50};

/// Whether the service rejected the request, so that this attempt had no effect.
bool is_refusal(const Error& error) {
  return error.http_status >= 400 && error.http_status < 500 && error.code != ErrorCode::timed_out &&
         error.code != ErrorCode::rate_limited;
}

/// Converts a rejection that follows an unanswered attempt: this one had no effect, but the earlier one may have.
Error in_doubt(Error refusal) {
  refusal.code = ErrorCode::protocol;
  refusal.message += "; an earlier attempt got no response, but may have been carried out";
  refusal.hint = "check whether it was, before you retry";
  return refusal;
}

/// Whether a body that must be a JSON object may be complete. Without a Content-Length, a broken connection looks like
/// a finished one.
bool is_whole(std::string_view body) {
  auto last = body.find_last_not_of(" \t\r\n");
  return last != std::string_view::npos && body[last] == '}';
}

}  // namespace

Call::~Call() {
  if (done) done(fail(interrupted(fmt::format("{} {}: playfs is shutting down", request.method, request.target))));
}

void Call::answer(Result<HttpResponse> result) {
  under_way.reset();
  auto callback = std::move(done);
  callback(std::move(result));
}

CallEngine::CallEngine(net::Transport& transport, Executor& executor, const Clock& clock, Random& random,
                       ClientOptions options)
    : transport_(transport),
      executor_(executor),
      clock_(clock),
      random_(random),
      options_(std::move(options)),
      origin_(transport.origin()),
      site_(origin_ + options_.base_path),
      longest_read_(options_.retry.longest_call),
      credentials_{options_.api_key, options_.account},
      breaker_(options_.breaker) {}

void CallEngine::start(CallPtr call) {
  if (options_.offline) {
    reject(call, Error{ErrorCode::offline, fmt::format("{} {}: offline", call->request.method, call->request.target)});
  } else {
    call->begun = clock_.steady();
    call->under_way =
        under_way_->begin({call->request.method + " " + call->request.target, call->begun, longest(call->request)});
    admit(call);
  }
}

void CallEngine::admit(const CallPtr& call) {
  const auto ticket = gate_->enter();
  if (!ticket) return;
  Breaker::Admission admission{};
  seconds silence{0};
  std::string last_error;
  {
    MutexLock lock(mutex_);
    const SteadyTime now = clock_.steady();
    admission = breaker_.admits(call->subject, now);
    silence = std::chrono::floor<seconds>(breaker_.silence(now));
    last_error = health_.last_error;
  }
  if (admission == Breaker::Admission::yes) return attempt(call);
  if (admission == Breaker::Admission::soon) return wait(call, kMoment, &CallEngine::admit);
  Error error{ErrorCode::unreachable,
              fmt::format("{} {}: the service has not answered for {} s ({})", call->request.method,
                          call->request.target, silence.count(), last_error),
              "wait: playfs retries every few seconds"};
  error.is_unsent = true;
  reject(call, std::move(error));
}

void CallEngine::reject(const CallPtr& call, Error error) {
  const auto ticket = gate_->enter();
  if (!ticket) return;  // the call's destructor answers
  executor_.post([call, error = std::move(error)]() mutable { call->answer(fail(std::move(error))); });
}

void CallEngine::stream(HttpRequest request, net::StreamLimits limits, CancelToken cancel,
                        net::StreamReceiver receiver) {
  const auto ticket = gate_->enter();
  if (!ticket) return receiver.ended(fail(interrupted("the client is closed")));
  if (options_.offline) return receiver.ended(fail(ErrorCode::offline, "offline"));
  {
    MutexLock lock(mutex_);
    ++health_.requests;
  }
  transport_.stream(std::move(request), limits, std::move(cancel), std::move(receiver));
}

void CallEngine::close() { gate_->close(); }

void CallEngine::attempt(const CallPtr& call) {
  const auto ticket = gate_->enter();
  if (!ticket) return;
  if (call->cancel.cancelled()) return reject(call, interrupted("cancelled"));
  if (!call->permit) return transmit(call);
  call->permit(call->in_doubt, call->cancel, [self = shared_from_this(), call](Status may) {
    if (may) self->transmit(call);
    else self->reject(call, std::move(may).error());
  });
}

void CallEngine::transmit(const CallPtr& call) {
  const auto ticket = gate_->enter();
  if (!ticket) return;
  nanoseconds pause{0};
  {
    MutexLock lock(mutex_);
    auto paused = pauses_.find(call->bucket);
    if (paused != pauses_.end()) pause = paused->second.left(clock_.steady());
    if (pause <= nanoseconds(0)) ++health_.requests;
  }
  if (pause > nanoseconds(0)) {
    if (!call->may_wait || call->paused + pause > options_.retry.longest_obeyed) {
      Error error{ErrorCode::rate_limited,
                  fmt::format("{} {}: the service asked for a pause", call->request.method, call->request.target),
                  {},
                  std::chrono::ceil<seconds>(pause),
                  429,
                  "rate_limited"};
      return reject(call, std::move(error));
    }
    // Spread calls that waited for the same moment.
    pause += nanoseconds(random_.next() % std::max<std::int64_t>(1, nanoseconds(options_.retry.first_delay).count()));
    call->paused += pause;
    return wait(call, pause, &CallEngine::attempt);
  }
  call->sent_at = clock_.steady();
  // The rest of the call's total time bounds this attempt too.
  net::Deadline deadline = options_.deadline;
  const nanoseconds left = nanoseconds(longest(call->request)) - tried(*call);
  deadline.total = std::min(deadline.total,
                            std::max(std::chrono::milliseconds(1), std::chrono::ceil<std::chrono::milliseconds>(left)));
  transport_.send(
      call->request, deadline, call->cancel,
      [self = shared_from_this(), call](Result<HttpResponse> result) { self->on_response(call, std::move(result)); });
}

seconds CallEngine::longest(const HttpRequest& request) const {
  const seconds any = options_.retry.longest_call;
  return is_read(request) ? std::min(any, longest_read_.load()) : any;
}

nanoseconds CallEngine::tried(const Call& call) const { return clock_.steady() - call.begun - call.paused; }

void CallEngine::on_response(const CallPtr& call, Result<HttpResponse> result) {
  const auto ticket = gate_->enter();
  if (!ticket) return call->answer(fail(interrupted("the client is closed")));
  auto error = judge(*call, result);
  note(*call, result, error);
  if (!call->judged) return call->answer(std::move(result));
  if (!error) return call->answer(std::move(result));

  bool limited = error->code == ErrorCode::rate_limited;
  bool repeatable = call->repeat == Repeat::freely || (call->repeat == Repeat::if_not_done && limited);
  net::RetryPolicy policy = options_.retry;
  policy.longest_call = longest(call->request);
  auto delay = net::retry_delay(policy, {call->number, *error, repeatable, call->paused, tried(*call)}, random_.next());
  if (call->in_doubt) error->is_unsent = false;  // an earlier attempt may have been
  if (!delay) return call->answer(fail(call->in_doubt && is_refusal(*error) ? in_doubt(*std::move(error)) : *error));
  call->in_doubt = call->in_doubt || (!limited && !error->is_unsent && !is_read(call->request));
  if (limited) call->paused += *delay;
  else ++call->number;
  wait(call, *delay, &CallEngine::attempt);
}

void CallEngine::wait(const CallPtr& call, nanoseconds delay, void (CallEngine::*then)(const CallPtr&)) {
  // Whichever comes first, the timer or cancellation, takes the call.
  auto taken = std::make_shared<std::atomic<bool>>(false);
  auto registration = call->cancel.on_cancel([self = shared_from_this(), call, taken] {
    if (!taken->exchange(true)) self->reject(call, interrupted("cancelled"));
  });
  executor_.post_after(delay, [self = shared_from_this(), call, taken, then, registration = std::move(registration)]() {
    if (!taken->exchange(true)) (self.get()->*then)(call);
  });
}

std::optional<Error> CallEngine::judge(const Call& call, const Result<HttpResponse>& result) const {
  if (!result) return result.error();
  int status = result->status;
  bool unchanged = status == 304 && call.request.headers.get("If-None-Match");
  if (unchanged || (status >= 200 && status < 300 && (!call.judged || is_whole(result->body)))) return std::nullopt;
  std::string what = fmt::format("{} {}", call.request.method, call.request.target);
  if (status >= 200 && status < 300)
    return Error{ErrorCode::unreachable, what + ": the response is incomplete", {}, {}, status};
  auto retry_after = retry_after_of(*result, clock_);
  return wire::decode_error(status, result->body, retry_after).while_doing(what);
}

void CallEngine::note(const Call& call, const Result<HttpResponse>& result, const std::optional<Error>& error) {
  MutexLock lock(mutex_);
  limits_.note(call.bucket, !is_read(call.request), result ? &*result : nullptr,
               error ? error->retry_after : std::nullopt, clock_);
  if (error && (error->code == ErrorCode::interrupted || error->code == ErrorCode::invalid_argument)) return;
  bool away = error && (traits_of(error->code).reached == Reached::silence ||
                        (error->code == ErrorCode::protocol && error->http_status == 0));
  health_.reachable = !away || is_answer(*error);
  if (health_.reachable) breaker_.answered(clock_.steady());
  else breaker_.not_answered(call.subject, call.sent_at, clock_.steady());
  if (away) {
    health_.last_failure = clock_.wall();
    health_.last_error = error->message;
  } else {
    health_.last_success = clock_.wall();
  }
  if (error && error->code == ErrorCode::rate_limited) {
    pauses_[call.bucket].asked(call.sent_at, clock_.steady(), error->retry_after.value_or(kPauseUnasked));
  } else if (auto pause = pauses_.find(call.bucket);
             !away && pause != pauses_.end() && pause->second.ends(call.sent_at)) {
    pauses_.erase(pause);
  }
}

std::optional<Unanswered> CallEngine::unanswered() const {
  const auto oldest = under_way_->oldest();
  if (!oldest) return std::nullopt;
  const nanoseconds waited = clock_.steady() - oldest->since;
  return Unanswered{oldest->what, waited, oldest->longest - waited};
}

void CallEngine::ask_now() {
  MutexLock lock(mutex_);
  for (auto& [bucket, pause] : pauses_) pause.open(clock_.steady());
  breaker_.hear_everybody();
}

void CallEngine::set_credentials(Credentials credentials) {
  MutexLock lock(mutex_);
  credentials_ = std::move(credentials);
}

Credentials CallEngine::credentials() const {
  MutexLock lock(mutex_);
  return credentials_;
}

std::map<std::string, ObservedLimit> CallEngine::limits() const {
  MutexLock lock(mutex_);
  return limits_.seen(clock_.steady());
}

Health CallEngine::health() const {
  MutexLock lock(mutex_);
  Health health = health_;
  auto now = clock_.steady();
  for (const auto& [bucket, pause] : pauses_) {
    if (pause.until() <= now) continue;
    WallTime wall{clock_.wall().nanoseconds + nanoseconds(pause.until() - now).count()};
    health.paused_until = std::max(health.paused_until.value_or(wall), wall);
  }
  return health;
}

}  // namespace playfs::remote
