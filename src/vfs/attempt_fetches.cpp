#include "vfs/attempt_fetches.h"

#include <algorithm>

#include "vfs/control/requests_under_way.h"
#include "vfs/listings.h"
#include "vfs/once.h"

namespace playfs::vfs {

Fetch fetch_news(Mount& mount, const OperationPtr& op, std::string what, std::chrono::milliseconds patience,
                 std::string fact, Ask ask) {
  return [&mount, op, what = std::move(what), patience, fact = std::move(fact), ask = std::move(ask)](
             CancelToken cancel, Callback<void> done) mutable {
    Once<void> first(std::move(done));
    ask(std::move(cancel), [op, fact, first](Status asked) {
      if (!asked && asked.error().code == ErrorCode::interrupted) return first(std::move(asked));
      op->note(fact);
      first({});
    });
    auto ran_out = [&mount, gate = mount.gate(), op, what, fact, first] {
      if (op->noted(fact)) return;
      op->note(fact);
      if (auto ticket = gate->enter()) mount.site().patience().ran_out(what);
      first({});
    };
    if (patience > patience.zero()) mount.executor().post_after(patience, ran_out);
    else ran_out();
  };
}

Fetch fetch_for_a_while(Mount& mount, const OperationPtr& op, std::chrono::milliseconds patience,
                        std::chrono::milliseconds longer, std::string fact, Fetch fetch) {
  /// The request may outlast the operation; so must its cancellation and the mount's ticket.
  struct LongRequest {
    explicit LongRequest(Gate::Ticket in) : ticket(std::move(in)) {}
    Gate::Ticket ticket;
    CancelSource source;
    std::vector<CancelToken::Registration> ends;
  };
  return [&mount, op, patience, longer, fact = std::move(fact), fetch = std::move(fetch)](const CancelToken& cancel,
                                                                                          Callback<void> done) mutable {
    const auto left = op->begun + patience - std::chrono::steady_clock::now();
    Once<void> first(std::move(done));
    auto ran_out = [op, fact, first] {
      op->note(fact);
      first({});
    };
    if (left <= left.zero()) return ran_out();
    auto ticket = mount.gate()->enter();
    if (!ticket) return first(fail(ErrorCode::interrupted, "the mount is shutting down"));
    auto request = std::make_shared<LongRequest>(std::move(*ticket));
    for (const CancelToken& end : {cancel, mount.gate()->closing()})
      request->ends.push_back(end.on_cancel([source = request->source]() mutable { source.cancel(); }));
    mount.executor().post_after(left, ran_out);
    mount.executor().post_after(left + longer, [source = request->source]() mutable { source.cancel(); });
    CancelToken token = request->source.token();
    fetch(std::move(token), [first, request](Status status) { first(std::move(status)); });
  };
}

Attempt<void> own_requests_answered(Mount& mount, const OperationPtr& op, const std::string& collection,
                                    const std::string* owner) {
  constexpr std::chrono::seconds kOwnPatience{2};
  // Programs wait. What the mount does by itself does not, nor do requests: they would wait for themselves, or for
  // those behind them.
  const std::string fact = "own/" + collection;
  const bool is_program = op->caller.pid != 0 && !op->noted(kGoesOn) && !op->held<RequestTextPtr>(kRequestText);
  if (!is_program || op->noted(fact)) return {};
  const RequestTextPtr text = mount.requests().creating(collection, owner);
  const auto watcher = text ? mount.requests().watcher() : nullptr;
  // All writers wait for the watcher's lookups.
  if (!text || (watcher && watcher->looked_up_by(op->caller.pid))) return {};
  // Its answer, not its end: for that the kernel has to drop names that it may have locked for this operation.
  Fetch answered = [text](const CancelToken& cancel, Callback<void> done) {
    text->wait_for_answer(cancel, std::move(done));
  };
  const auto since = std::min(text->started(), op->begun);
  return missing(fetch_for_a_while(mount, op,
                                   std::chrono::ceil<std::chrono::milliseconds>(since + kOwnPatience - op->begun),
                                   std::chrono::seconds(1), fact, std::move(answered)));
}

Fetch on_disk(Mount& mount, UniqueFunction<Status()> work) {
  return [&threads = mount.disk(), work = std::move(work)](const CancelToken&, Callback<void> done) mutable {
    threads.post([work = std::move(work), done = std::move(done)]() mutable {
      Status status = work();
      work = {};
      done(std::move(status));
    });
  };
}

Fetch off_thread(Mount& mount, Executor& threads, UniqueFunction<void(const CancelToken&, Callback<void>)> work) {
  return [&mount, &threads, work = std::move(work)](const CancelToken& cancel, Callback<void> done) mutable {
    Once<void> first(std::move(done));
    auto ending = std::make_shared<CancelToken::Registration>(
        cancel.on_cancel([first] { first(fail(ErrorCode::interrupted, "the wait was cancelled")); }));
    threads.post([gate = mount.gate(), cancel, first, ending, work = std::move(work)]() mutable {
      auto ticket = gate->enter();
      if (ticket && !cancel.cancelled()) work(cancel, [first, ending](Status status) { first(std::move(status)); });
      work = {};  // drop what it refers to before the ticket
    });
  };
}

namespace {

/// What is made of more bytes is rendered on the thread for large records. Honest histories rarely exceed this.
constexpr std::size_t kMostOrdinary = 1 << 20;

}  // namespace

Attempt<std::string> rendered(Mount& mount, const OperationPtr& op, const std::string& name, std::size_t bytes,
                              UniqueFunction<std::string()> render) {
  if (bytes <= kRenderedAtOnce) return render();
  const std::string held = "text/" + name;
  if (auto text = op->held<std::string>(held)) return *text;
  Executor& threads = bytes > kMostOrdinary ? mount.large() : mount.reading();
  return missing(off_thread(mount, threads,
                            [op, held, render = std::move(render)](const CancelToken&, Callback<void> done) mutable {
                              op->hold(held, std::make_shared<const std::string>(render()));
                              done({});
                            }));
}

namespace {

/// `ask` receives the task to run once the kernel knows.
template <class Ask>
Fetch until_told(Mount& mount, const OperationPtr& op, std::string fact, std::chrono::milliseconds patience, Ask ask) {
  return [&mount, op, fact = std::move(fact), patience, ask](const CancelToken& cancel, Callback<void> done) {
    Once<void> first(std::move(done));
    auto give_up = [op, fact, first] {
      op->note(kUntold);
      op->note(fact);
      first({});
    };
    auto ending = std::make_shared<CancelToken::Registration>(cancel.on_cancel(give_up));
    ask([op, fact, first, ending] {
      op->note(fact);
      first({});
    });
    mount.executor().post_after(patience, give_up);
  };
}

}  // namespace

Fetch until_kernel_knows(Mount& mount, const OperationPtr& op, const ProjectId& project, std::string fact,
                         std::chrono::milliseconds patience) {
  return until_told(mount, op, std::move(fact), patience, [&mount, whose = project.text()](Task task) {
    mount.notifications().when_told(whose, std::move(task));
  });
}

Fetch until_kernel_knows(Mount& mount, const OperationPtr& op, NodeId node, std::string fact) {
  return until_told(mount, op, std::move(fact), kKernelPatience,
                    [&mount, node](Task task) { mount.notifications().then(node, std::move(task)); });
}

Fetch until_listings_are_dropped(Mount& mount, const OperationPtr& op, const std::string& collection,
                                 std::string fact) {
  return until_told(mount, op, std::move(fact), kKernelPatience, [&mount, whose = listings_of(collection)](Task task) {
    mount.notifications().when_told(whose, std::move(task));
  });
}

}  // namespace playfs::vfs
