#include "vfs/control/request_sending.h"

#include <atomic>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/shell.h"
#include "base/text.h"
#include "vfs/attempt_fetches.h"
#include "vfs/control/control_text.h"
#include "vfs/control/draft.h"
#include "vfs/control/handles.h"
#include "vfs/control/record_name.h"
#include "vfs/control/requests_under_way.h"
#include "vfs/control/resumed_requests.h"
#include "vfs/control/unsent_text.h"
#include "vfs/mount.h"
#include "wire/json.h"

namespace playfs::vfs {
namespace {

/// Checked before anything is sent, so that a request of several steps is not sent in part.
Status check_size(const RequestStep& step) {
  const std::size_t size = json_size(step.body);
  if (size <= kMaxRecordSize) return {};
  return fail(ErrorCode::record_too_large,
              "the record would have " + std::to_string(size) + " bytes of JSON, of " + std::to_string(kMaxRecordSize) +
                  " allowed; nothing was sent",
              "shorten it, or split it");
}

Async<RecordPartPtr> create(Mount& mount, RequestStep step, std::string caller, remote::Permit permit) {
  auto begin = [&mount, step = std::move(step), caller = std::move(caller), permit = std::move(permit)](
                   const CancelToken& cancel, Callback<RecordPartPtr> made) {
    // Not on this thread: the client's threads carry all responses, and storing this one may take long.
    auto learn = [&mount, collection = step.collection, cancel, made = std::move(made)](Result<Record> record) mutable {
      if (!record) return made(fail(std::move(record).error()));
      mount.executor().post(
          [&mount, collection, cancel, record = std::move(*record), made = std::move(made)]() mutable {
            auto text = std::make_shared<const content::RecordText>(mount.site().learn(collection, record));
            record = {};
            make_part(mount, std::move(text), text_of_record, cancel, std::move(made));
          });
    };
    mount.site().client().ask_now();
    mount.site().client().create_record(step.collection, step.body, step.key, cancel, std::move(learn), caller, permit);
  };
  auto created = answer<RecordPartPtr>(std::move(begin));
  co_return co_await created;
}

/// If the journal cannot be written, sending goes on nevertheless: it has the keys already.
void journal_if_possible(Mount& mount, const JournalledRequest& request) {
  if (Status written = mount.journal().record(request); !written)
    log_warning("the progress of a request is not journalled: " + written.error().message);
}

Fetch journal_progress(Mount& mount, const std::shared_ptr<JournalledRequest>& request) {
  return on_disk(mount, [&mount, request]() -> Status {
    journal_if_possible(mount, *request);
    return {};
  });
}

Fetch end_in_journal(Mount& mount, const std::shared_ptr<JournalledRequest>& request) {
  return on_disk(mount, [&mount, request]() -> Status {
    mount.journal().end(*request);
    return {};
  });
}

/// Whether something is checked before it is sent, so that the next mount must know whether it was.
bool is_checked_first(const JournalledRequest& request) {
  const RequestStep& first = request.steps.front();
  return first.collection == "agents" || !first.thread_title.empty();
}

/// What one call has tried, which the client repeats by itself.
struct Tries {
  std::atomic<bool> was_in_doubt = false;  ///< whether it may have arrived before the last attempt
  std::atomic<bool> is_out = false;        ///< whether the last attempt was permitted
};

/// Before each attempt: what was written by a thread's title goes there only if it still has that title. And the
/// journal knows of the attempt before it is made.
remote::Permit permit_of(Mount& mount, const std::shared_ptr<JournalledRequest>& request, const std::string& title,
                         const std::shared_ptr<Tries>& tries) {
  const bool before = request->may_have_arrived;
  tries->was_in_doubt = before;
  return [&mount, request, title, tries, before](bool in_doubt, const CancelToken& cancel, Callback<void> done) {
    tries->was_in_doubt = before || in_doubt;
    tries->is_out = false;
    auto permit = [&mount, request, tries, done = std::move(done)](Status may) mutable {
      if (!may) return done(std::move(may));
      tries->is_out = true;
      if (std::exchange(request->may_have_arrived, true) || !is_checked_first(*request)) return done({});
      mount.disk().post([&mount, request, done = std::move(done)]() mutable {
        journal_if_possible(mount, *request);
        done({});
      });
    };
    if (title.empty()) return permit({});
    const std::string thread = text_field(request->steps.front().body, "thread");
    ask_name(mount, addressed_thread(thread, title), tries->was_in_doubt, cancel, std::move(permit));
  };
}

/// After a failed call. What the service refused because of too many requests has not arrived, nor has what found no
/// connection.
bool may_have_arrived(const Tries& tries, const Error& error) {
  return tries.was_in_doubt || (tries.is_out && !error.is_unsent && error.code != ErrorCode::rate_limited);
}

/// Why the step failed, and what its writer can do.
Error failure_of(const JournalledRequest& request, std::size_t step, Error error) {
  // A refusal does not prove that an earlier attempt did not arrive, so a repeated request keeps its keys.
  if (request.may_have_arrived) error.is_unsent = false;
  if (request.may_have_arrived || error.is_unsent || error.code == ErrorCode::rate_limited)
    error = with_advice(std::move(error), "it may have arrived: write the same text again, and it is sent once",
                        "wait, then write the same text again: it is sent once");
  if (step == 0) return error;
  const std::string& thread = request.steps[0].made;
  error.message = "the thread " + thread + " was created, but its first message was not: " + error.message;
  error.hint = "write the message to threads/" + thread +
               "/reply; the same request again sends the message, too, and no second thread";
  return error;
}

/// Sends the steps whose records have not been made. `request` then has their ids. `title`: by which its thread was
/// addressed, if it was.
Async<Sent> send(Mount& mount, std::shared_ptr<JournalledRequest> request, std::string title) {
  RecordPartPtr last;
  for (std::size_t at = 0; at < request->steps.size(); ++at) {
    if (at + 1 < request->steps.size() && !request->steps[at].made.empty()) continue;
    RequestStep step = request->steps[at];
    if (at > 0) step.body.set("thread", request->steps[at - 1].made);
    auto tries = std::make_shared<Tries>();
    auto creating = create(mount, std::move(step), request->caller, permit_of(mount, request, title, tries));
    Result<RecordPartPtr> part = co_await creating;
    if (!part && part.error().code == ErrorCode::interrupted) co_return fail(std::move(part).error());
    if (!part) {
      const bool was_out = std::exchange(request->may_have_arrived, may_have_arrived(*tries, part.error()));
      if (was_out != request->may_have_arrived && is_checked_first(*request))
        PLAYFS_AWAIT_CHECK(journal_progress(mount, request));
      co_return fail(failure_of(*request, at, std::move(part).error()));
    }
    last = *part;
    request->steps[at].made = last->record.id;
    if (at + 1 < request->steps.size()) PLAYFS_AWAIT_CHECK(journal_progress(mount, request));
  }
  PLAYFS_AWAIT_CHECK(end_in_journal(mount, request));
  co_return Sent{request, last};
}

/// The record of a handle that was registered, with what it does not change; nullopt if this mount writes as it.
std::optional<std::string> shown_registration(const Mount& mount, const RequestStep& step,
                                              const content::RecordPart& made) {
  const std::string handle = text_field(step.body, "handle"), &writes_as = mount.options().agent;
  if (step.collection != "agents" || handle == writes_as || !made.text.bytes()) return std::nullopt;
  auto record = wire::parse_json(*made.text.bytes());
  if (!record || !record->object() || record->object()->find("then")) return std::nullopt;
  JsonObject shown = *record->object();
  shown.append("then", "'" + handle + "' is registered, and this mount still writes as '" + writes_as +
                           "'; to write as '" + handle + "', mount again: playfs umount DIR && " +
                           shell_line({{"playfs", "mount"},
                                       {mount.options().mount_source, "DIR"},
                                       {"-o", "agent=" + escape_for_mount(handle)}}) +
                           "; for commands: export " + shell_word("PLAYFS_AGENT=" + handle));
  return wire::to_pretty_text(shown);
}

/// Waits until all requests written to the file earlier have an outcome, whatever it is.
Async<void> until_its_turn(Mount& mount, std::string path, RequestTextPtr text) {
  while (RequestTextPtr before = mount.requests().running_before(path, text)) {
    Fetch until_done = [before](const CancelToken& cancel, Callback<void> done) {
      before->wait(cancel, std::move(done));
    };
    PLAYFS_CO_CHECK(co_await until_done);
  }
  co_return Status();
}

/// Checks that a handle is free, unless the request may have arrived: then it may have taken the handle itself.
Async<void> check_handle(Mount& mount, OperationPtr op, std::shared_ptr<JournalledRequest> request) {
  const RequestStep& first = request->steps.front();
  if (first.collection != "agents" || mount.journal().may_have_arrived(*request)) co_return Status();
  auto checking = check_handle_is_free(mount, op, text_field(first.body, "handle"), "");
  Status may_go = co_await checking;
  // Perhaps taken by itself: a writer may repeat a request while it is resumed.
  if (!may_go && mount.journal().may_have_arrived(*request)) co_return Status();
  co_return may_go;
}

/// Saves the text of a request that was accepted and then refused. Returns the error that says where.
Async<void> give_up(Mount& mount, std::shared_ptr<JournalledRequest> request, Error why) {
  auto told = std::make_shared<Error>(std::move(why));
  PLAYFS_AWAIT_CHECK(on_disk(mount, [&mount, request, told]() -> Status {
    *told = mount.journal().give_up(*request, *told);
    return {};
  }));
  co_return fail(*told);
}

/// The mount sends it again by itself. Returns the error for its writer.
Async<void> hand_over(Mount& mount, RequestTextPtr text, std::shared_ptr<JournalledRequest> request, Error why) {
  why.hint = kSentAgain;
  PLAYFS_AWAIT_CHECK(on_disk(mount, [&mount, request]() -> Status {
    // It goes on if that cannot be written: the journal has the request already.
    if (Status kept = mount.journal().keep_sending(*request); !kept) log_warning(kept.error().message);
    return {};
  }));
  mount.resumed().add(request, text->order(), why);
  co_return fail(std::move(why));
}

/// What becomes of a request that failed. Returns the error for its writer.
Async<void> after_failure(Mount& mount, RequestTextPtr text, std::shared_ptr<JournalledRequest> request, Error error) {
  if (error.code == ErrorCode::interrupted) co_return fail(std::move(error));  // the next mount sends it again
  if (mount.journal().is_sent_again(*request)) {
    if (is_undecided(error)) error.hint = kSentAgain;
    co_return fail(std::move(error));
  }
  if (!text->is_accepted() && is_refused_here(error) && !mount.journal().may_have_arrived(*request)) {
    if (!request->is_joined) PLAYFS_AWAIT_CHECK(end_in_journal(mount, request));
    co_return fail(std::move(error));
  }
  if (!text->is_accepted()) {
    request->is_told = true;
    PLAYFS_AWAIT_CHECK(journal_progress(mount, request));
    co_return fail(std::move(error));
  }
  auto ending = is_undecided(error) ? hand_over(mount, text, request, error) : give_up(mount, request, error);
  co_return co_await ending;
}

/// Why a request was not tried: an earlier one of its file waits, for `why`.
Error behind(const RequestText& text, Error why) {
  why.message = "what was written here earlier has not arrived yet (" + why.message + "), so this was not sent";
  if (!text.is_accepted()) why.hint = "wait until that is sent, then write this again";
  return why;
}

/// Checks and sends it: nothing that was written to the file earlier is in its way.
Async<Sent> send_in_turn(Mount& mount, OperationPtr op, RequestTextPtr text, std::shared_ptr<JournalledRequest> request,
                         std::string title) {
  // Not before its turn, since an earlier request may have taken the handle.
  auto checking = check_handle(mount, op, request);
  Status may_go = co_await checking;
  Result<Sent> sent = fail(may_go ? Error() : may_go.error());
  if (may_go) {
    auto sending = send(mount, request, title);
    sent = co_await sending;
  }
  if (sent) text->set_answered();
  if (sent) co_return sent;
  PLAYFS_AWAIT_CHECK(after_failure(mount, text, request, sent.error()));
  co_return sent;
}

}  // namespace

Async<Sent> send_once(Mount& mount, OperationPtr op, std::string path, std::vector<RequestStep> steps) {
  for (const RequestStep& step : steps) PLAYFS_CO_CHECK(check_size(step));
  const RequestTextPtr text = *op->held<RequestTextPtr>(kRequestText);
  const std::string title = steps.front().thread_title;
  auto request = std::make_shared<JournalledRequest>();
  PLAYFS_AWAIT_CHECK(on_disk(mount, [&mount, path, steps, request, text, order = text->order()]() -> Status {
    PLAYFS_TRY(*request,
               mount.journal().begin(path, steps, order, mount.site().client().caller(), text->draft()->name()));
    text->draft()->end();
    if (text->is_left()) mount.journal().set_left(text->draft()->name(), true);  // too early, before
    return {};
  }));
  PLAYFS_AWAIT_CHECK(until_its_turn(mount, path, text));
  PLAYFS_AWAIT_CHECK(mount.resumed().tried(path));
  if (auto why = mount.resumed().keeps_waiting(path))
    PLAYFS_AWAIT_CHECK(after_failure(mount, text, request, behind(*text, *std::move(why))));
  auto sending = send_in_turn(mount, op, text, request, title);
  co_return co_await sending;
}

Async<Sent> send_again(Mount& mount, OperationPtr op, std::shared_ptr<JournalledRequest> request) {
  PLAYFS_AWAIT_CHECK(check_handle(mount, op, request));
  auto sending = send(mount, request, mount.journal().thread_title(*request));
  co_return co_await sending;
}

ShownText shown_answer(Mount& mount, const Sent& sent) {
  const std::vector<RequestStep>& steps = sent.request->steps;
  if (steps.size() == 1) {
    if (auto registered = shown_registration(mount, steps[0], *sent.last)) return *std::move(registered);
    return shown_text_of(mount, steps[0].collection, sent.last->record.id, text_of_record, *sent.last);
  }
  JsonObject made{{"id", steps[0].made}};
  for (const auto& [name, value] : steps[0].body) made.set(name, value);
  made.set("first_message", sent.last->record.id);
  return wire::to_pretty_text(made);
}

Async<void> check_step(Mount& mount, OperationPtr op, RequestStep step) {
  if (step.collection == "agents")
    PLAYFS_AWAIT_CHECK(check_handle_is_free(mount, op, text_field(step.body, "handle"), ""));
  if (step.thread_title.empty()) co_return Status();
  auto asking = [&mount, addressed = addressed_thread(text_field(step.body, "thread"), step.thread_title)](
                    const CancelToken& cancel, Callback<void> done) {
    ask_name(mount, addressed, false, cancel, std::move(done));
  };
  Fetch ask = asking;
  co_return co_await ask;
}

bool is_undecided(const Error& error) { return traits_of(error.code).reached != Reached::decision; }

Error with_advice(Error error, const std::string& lost, const std::string& later) {
  const Reached reached = traits_of(error.code).reached;
  if (reached == Reached::decision || reached == Reached::nobody) return error;
  if (error.is_unsent) {
    error.hint = "it was not sent: write it again";
    return error;
  }
  const std::string& advice = error.code == ErrorCode::rate_limited ? later : lost;
  error.hint = advice + (error.hint.empty() ? "" : "; " + error.hint);
  return error;
}

}  // namespace playfs::vfs
