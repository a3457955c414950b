// Runs an operation's attempts to completion: at once if everything is available, else again after each fetch.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "base/log.h"
#include "vfs/attempt.h"
#include "vfs/mount.h"

namespace playfs::vfs {

/// Fetches that one operation may make, one after another. Only a service that never sends what was asked for reaches
/// the limit.
inline constexpr int kMostRounds = 64;

/// Noted when an operation's error has already been recorded, by whatever it waited for.
inline constexpr const char* kRecorded = "recorded";

/// Noted when a node refused a change that nobody may make there, so that the log says why.
inline constexpr const char* kRefused = "refused";

/// Noted when an operation was cancelled because its time was up.
inline constexpr const char* kOutOfTime = "out of time";
/// Cancels the operation when its limit expires.
void watch_the_time(Mount& mount, const OperationPtr& op);
/// Turns `interrupted` into `timed_out` if the limit caused it; returns other errors unchanged.
Error as_out_of_time(const Operation& op, Error error);

/// Ties a waiting operation to its caller's cancellation and the mount's end, and registers what the kernel keeps
/// locked for it.
class Waiting {
 public:
  Waiting(Gate::Ticket ticket, Notifications::Hold hold, const Gate& gate, const Operation& op)
      : ticket_(std::move(ticket)), hold_(std::move(hold)) {
    for (const CancelToken& token : {op.caller.cancel, op.out_of_time.token(), gate.closing()})
      registrations_.push_back(token.on_cancel([source = source_]() mutable { source.cancel(); }));
  }
  [[nodiscard]] CancelToken token() const { return source_.token(); }

 private:
  Gate::Ticket ticket_;
  Notifications::Hold hold_;
  CancelSource source_;
  std::vector<CancelToken::Registration> registrations_;
};

/// Calls `attempt`, an Attempt<T>(const OperationPtr&), possibly several times but never concurrently. `subject`, a
/// std::string(), supplies the path for a recorded error.
template <class T, class F, class S>
void drive(Mount& mount, Counted counted, OperationPtr op, F attempt, S subject, Reply<T> reply, int round = 0) {
  Attempt<T> outcome = [&]() -> Attempt<T> {
    try {
      return attempt(op);
    } catch (const std::exception& exception) {
      return fail(ErrorCode::internal, std::string("unexpected: ") + exception.what());
    }
  }();
  if (outcome) {
    if constexpr (std::is_void_v<T>) {
      reply({});
    } else {
      reply(std::move(*outcome));
    }
    return;
  }

  auto fail_with = [&mount, counted, op](const S& about, Reply<T>& to, Error error) {
    error = as_out_of_time(*op, std::move(error));
    mount.metrics().count_error(counted);
    if (traits_of(error.code).recorded && !op->noted(kRecorded)) mount.site().events().error(about(), error);
    else if (op->noted(kRefused)) mount.site().events().refusal(about(), error);
    to(fail(std::move(error)));
  };
  NoValue stop = std::move(outcome).error();
  if (!stop.fetch) return fail_with(subject, reply, std::move(stop.error));
  if (round == kMostRounds) {
    return fail_with(subject, reply, {ErrorCode::protocol, "the service's responses make no progress"});
  }
  auto ticket = mount.gate()->enter();
  if (!ticket) return reply(fail(ErrorCode::interrupted, "the mount is shutting down"));
  const bool may_yield = round == 0 && op->yields && !op->may_be_second;
  auto hold = mount.notifications().hold(op->locked, may_yield ? std::optional(op->caller.pid) : std::nullopt);
  if (!hold) {
    mount.sent_back().note(op->caller.pid);
    return reply(fail(ErrorCode::stale, "the directory is changing: try again"));
  }
  if (round == 0) {
    mount.metrics().count_waited(counted);
    watch_the_time(mount, op);
  }

  auto waiting = std::make_unique<Waiting>(std::move(*ticket), std::move(*hold), *mount.gate(), *op);
  CancelToken cancel = waiting->token();
  // Continue on the executor: the completing thread belongs to another module and must neither run an attempt nor drop
  // the last reference to a node.
  stop.fetch(std::move(cancel), [&mount, counted, op, attempt = std::move(attempt), subject = std::move(subject),
                                 reply = std::move(reply), waiting = std::move(waiting), fail_with,
                                 round](Status status) mutable {
    mount.executor().post([&mount, counted, op = std::move(op), attempt = std::move(attempt),
                           subject = std::move(subject), reply = std::move(reply), waiting = std::move(waiting),
                           fail_with, round, status = std::move(status)]() mutable {
      auto until_the_end = std::move(waiting);  // destroyed last: the operation's references go before the ticket
      auto own_op = std::move(op);
      auto own_attempt = std::move(attempt);
      auto own_subject = std::move(subject);
      auto own_reply = std::move(reply);
      if (!status) return fail_with(own_subject, own_reply, std::move(status).error());
      drive<T>(mount, counted, std::move(own_op), std::move(own_attempt), std::move(own_subject), std::move(own_reply),
               round + 1);
    });
  });
}

}  // namespace playfs::vfs
