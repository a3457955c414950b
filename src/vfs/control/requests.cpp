#include "vfs/control/requests.h"

#include <algorithm>
#include <deque>
#include <map>

#include "base/log.h"
#include "vfs/attempt_driver.h"
#include "vfs/attempt_fetches.h"
#include "vfs/control/control_text.h"
#include "vfs/control/draft.h"
#include "vfs/control/handles.h"
#include "vfs/control/request_file.h"
#include "vfs/mount.h"
#include "vfs/published/record_fetches.h"
#include "wire/json.h"

namespace playfs::vfs {
namespace {

constexpr const char* kDryRun = "dry_run";

/// Backoff between attempts to send an earlier mount's requests while the service does not answer.
constexpr std::chrono::seconds kFirstPause{2}, kLongestPause{600};

}  // namespace

std::string help_document(const Form& form) {
  JsonObject fields;
  for (const auto& field : form.fields) fields.set(field.name, field.meaning);
  if (form.others) fields.set("…", "any other field is kept with the record");
  if (!fields.find(kDryRun)) fields.set(kDryRun, "true: say what would be sent; send nothing");
  auto example = wire::parse_json(form.example);
  JsonObject help{{"schema_version", kSchemaVersion},
                  {"outcome", nullptr},
                  {"write", std::string("plain text for \"") + form.plain + "\", or a JSON object"},
                  {"fields", std::move(fields)},
                  {"example", example ? std::move(*example) : Json()},
                  {"then", "all text written through one open is one request; read this file for its outcome"}};
  if (form.corrected)
    help.append("public",
                std::string("everybody can read what is sent, and nobody can withdraw it; ") + form.corrected);
  return wire::to_pretty_text(help);
}

Status check_fields(const JsonObject& body, const Form& form) {
  if (form.others) return {};
  std::string known;
  for (const auto& field : form.fields) known += (known.empty() ? "" : ", ") + std::string(field.name);
  for (const auto& [name, value] : body) {
    bool is_known = std::any_of(form.fields.begin(), form.fields.end(),
                                [&, &name = name](const Form::Field& field) { return name == field.name; });
    if (!is_known && name != kDryRun)
      return fail(ErrorCode::invalid_argument, "there is no field \"" + name + "\"", "the fields are " + known);
  }
  return {};
}

Result<JsonObject> request_body(const std::string& text, const Form& form) {
  const std::string plain = form.plain;
  std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos)
    return fail(ErrorCode::invalid_argument, "the request is empty",
                "write text, or JSON with at least \"" + plain + "\"");
  if (text[begin] == '{') {
    auto json = wire::parse_json(text);
    if (!json) return fail(ErrorCode::invalid_argument, "the request is not valid JSON: " + json.error().message);
    JsonObject body = *json->object();
    PLAYFS_CHECK(check_fields(body, form));
    if (!body.find(plain)) return fail(ErrorCode::invalid_argument, "the request has no \"" + plain + "\"");
    return body;
  }
  std::string_view value = text;
  if (value.ends_with('\n')) value.remove_suffix(1);
  return JsonObject{{plain, value}};
}

Result<bool> take_dry_run(JsonObject& body) {
  const Json* value = body.find(kDryRun);
  if (!value) return false;
  const auto is_dry = value->boolean();
  if (!is_dry) return fail(ErrorCode::invalid_argument, "\"dry_run\" must be true or false");
  body.erase(kDryRun);
  return *is_dry;
}

Status make_list(JsonObject& body, std::string_view name) {
  Json* value = body.find(name);
  if (!value) return {};
  if (const std::string* text = value->string())
    *value = text->empty() ? Json(Json::Array()) : Json(Json::Array{Json(*text)});
  const Json::Array* list = value->array();
  if (!list || !std::all_of(list->begin(), list->end(), [](const Json& each) { return each.string() != nullptr; }))
    return fail(ErrorCode::invalid_argument, "\"" + std::string(name) + "\" must be a text or a list of texts");
  return {};
}

namespace {

/// A dry run's answer: what would be sent, in order.
std::string plan_document(std::span<const RequestStep> steps) {
  Json::Array requests;
  for (const RequestStep& step : steps)
    requests.push_back(JsonObject{{"method", "POST"}, {"collection", step.collection}, {"body", step.body}});
  return wire::to_pretty_text(
      JsonObject{{"schema_version", kSchemaVersion}, {"outcome", "planned"}, {"would_send", std::move(requests)}});
}

/// Checked before anything is sent, so that a request of several steps is not sent in part.
Status check_size(const RequestStep& step) {
  const std::size_t size = json_size(step.body);
  if (size <= kMaxRecordSize) return {};
  return fail(ErrorCode::record_too_large,
              "the record would have " + std::to_string(size) + " bytes of JSON, of " + std::to_string(kMaxRecordSize) +
                  " allowed; nothing was sent",
              "shorten it, or split it");
}

Async<RecordPartPtr> create(Mount& mount, RequestStep step, std::string caller) {
  auto begin = [&mount, step = std::move(step), caller = std::move(caller)](const CancelToken& cancel,
                                                                            Callback<RecordPartPtr> made) {
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
    mount.site().client().create_record(step.collection, step.body, step.key, cancel, std::move(learn), caller);
  };
  auto created = answer<RecordPartPtr>(std::move(begin));
  co_return co_await created;
}

/// If the journal cannot be written, sending goes on nevertheless: it has the keys already.
Fetch journal_progress(Mount& mount, const std::shared_ptr<JournalledRequest>& request) {
  return on_disk(mount, [&mount, request]() -> Status {
    if (Status written = mount.journal().record(*request); !written)
      log_warning("the progress of a request is not journalled: " + written.error().message);
    return {};
  });
}

Fetch end_in_journal(Mount& mount, const std::shared_ptr<JournalledRequest>& request) {
  return on_disk(mount, [&mount, request]() -> Status {
    mount.journal().end(*request);
    return {};
  });
}

/// Whether the outcome is unknown, so that another attempt may find it out.
bool is_undecided(const Error& error) { return traits_of(error.code).reached != Reached::decision; }

/// Sends the steps whose records have not been made. Returns the last step's record; `request` has the others' ids.
Async<RecordPartPtr> send(Mount& mount, std::shared_ptr<JournalledRequest> request) {
  RecordPartPtr last;
  for (std::size_t at = 0; at < request->steps.size(); ++at) {
    if (at + 1 < request->steps.size() && !request->steps[at].made.empty()) continue;
    RequestStep step = request->steps[at];
    if (at > 0) step.body.set("thread", request->steps[at - 1].made);
    auto creating = create(mount, std::move(step), request->caller);
    Result<RecordPartPtr> part = co_await creating;
    if (!part) {
      Error error = std::move(part).error();
      // It will be sent again, by this mount or the next one, since its writer was told that it was accepted.
      if (error.code == ErrorCode::interrupted || (request->is_resumed && is_undecided(error)))
        co_return fail(std::move(error));
      // A refusal does not prove that an earlier attempt did not arrive, so a repeated request keeps its keys.
      error = with_advice(std::move(error), "it may have arrived: write the same text again, and it is sent once",
                          "wait, then write the same text again: it is sent once");
      // The writer of a resumed request does not see this error: RequestJournal::give_up() saves its text first.
      if (!request->is_resumed || request->is_joined) {
        request->is_told = true;
        PLAYFS_AWAIT_CHECK(journal_progress(mount, request));
      }
      if (at == 0) co_return fail(std::move(error));
      const std::string thread = request->steps[0].made;
      error.message = "the thread " + thread + " was created, but its first message was not: " + error.message;
      error.hint = "write the message to threads/" + thread +
                   "/reply; the same request again sends the message, too, and no second thread";
      co_return fail(std::move(error));
    }
    last = *part;
    request->steps[at].made = last->record.id;
    if (at + 1 < request->steps.size()) PLAYFS_AWAIT_CHECK(journal_progress(mount, request));
  }
  PLAYFS_AWAIT_CHECK(end_in_journal(mount, request));
  co_return last;
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

/// Checks that the handle of a new agent is free.
Async<void> check_is_free(Mount& mount, OperationPtr op, RequestStep step) {
  if (step.collection != "agents") co_return Status();
  auto checking = check_handle_is_free(mount, op, text_field(step.body, "handle"), "");
  co_return co_await checking;
}

/// Checks a request before it is sent for the first time. One that may have arrived may have taken the handle itself.
Async<void> check_once(Mount& mount, OperationPtr op, std::shared_ptr<JournalledRequest> request) {
  if (request->steps.front().collection != "agents" || mount.journal().is_checked(*request)) co_return Status();
  auto checking = check_is_free(mount, op, request->steps.front());
  Status is_free = co_await checking;
  // Perhaps taken by itself: a writer may repeat a request while it is resumed.
  if (!is_free && mount.journal().is_checked(*request)) co_return Status();
  PLAYFS_CO_CHECK(std::move(is_free));
  request->is_checked = true;
  auto journalled = journal_progress(mount, request);
  co_return co_await journalled;
}

/// Journals at once, and sends when it is its turn. `request` afterwards says what was made.
Async<RecordPartPtr> send_once(Mount& mount, OperationPtr op, std::string path, std::vector<RequestStep> steps,
                               std::shared_ptr<JournalledRequest> request) {
  for (const RequestStep& step : steps) PLAYFS_CO_CHECK(check_size(step));
  const RequestTextPtr text = *op->held<RequestTextPtr>(kRequestText);
  PLAYFS_AWAIT_CHECK(on_disk(mount, [&mount, path, steps, request, text, order = text->order()]() -> Status {
    PLAYFS_TRY(*request,
               mount.journal().begin(path, steps, order, mount.site().client().caller(), text->draft()->name()));
    text->draft()->end();
    return {};
  }));
  PLAYFS_AWAIT_CHECK(until_its_turn(mount, std::move(path), text));
  // Not before its turn, since an earlier request may have taken the handle.
  auto checking = check_once(mount, op, request);
  Status is_free = co_await checking;
  if (!is_free && is_free.error().code != ErrorCode::interrupted) PLAYFS_AWAIT_CHECK(end_in_journal(mount, request));
  if (!is_free) co_return fail(std::move(is_free).error());
  auto sending = send(mount, request);
  co_return co_await sending;
}

/// Gives up a request that will not be sent again, on a disk thread.
void give_up(Mount& mount, const JournalledRequest& request, const Error& why) {
  mount.site().events().error(request.path, mount.journal().give_up(request, why));
}

Async<void> send_again(Mount& mount, OperationPtr op, std::shared_ptr<JournalledRequest> request) {
  PLAYFS_AWAIT_CHECK(check_once(mount, op, request));
  auto sending = send(mount, request);
  auto sent = co_await sending;
  if (!sent) co_return fail(std::move(sent).error());
  JsonObject made{{"path", request->path}};
  for (const RequestStep& step : request->steps) made.append(step.collection, step.made);
  mount.site().events().event("request_resumed", std::move(made));
  co_return Status();
}

/// The requests of one file that an earlier mount left behind: sent in their order, each until it has an answer.
struct Resumed {
  std::deque<std::shared_ptr<JournalledRequest>> requests;
  std::chrono::seconds pause = kFirstPause;  ///< before the next attempt
  bool is_first = true;                      ///< failures after the first are no news
};

void resume(Mount& mount, const std::shared_ptr<Resumed>& left) {
  while (!left->requests.empty()) {
    const JournalledRequest& next = *left->requests.front();
    // Unless a writer repeated it and got the answer.
    if (mount.journal().is_unfinished(next)) {
      const Status may_be_sent = mount.journal().may_be_sent(next);
      if (may_be_sent) break;
      give_up(mount, next, may_be_sent.error());
    }
    left->requests.pop_front();
  }
  if (left->requests.empty()) return;
  auto request = left->requests.front();
  auto sent = [&mount, left, request](const Status& outcome) {
    if (!outcome && outcome.error().code == ErrorCode::interrupted) return;  // the next mount sends it again
    const bool again = !outcome && is_undecided(outcome.error());
    if (!outcome && (!again || left->is_first)) {
      Error error = outcome.error().while_doing("send what was written before the last unmount");
      if (again) {
        error.hint = "nothing need be done: it is sent again, for a day";
        mount.site().events().error(request->path, error);
      } else {
        mount.disk().post(Gate::guard(mount.gate(), [&mount, request, error] { give_up(mount, *request, error); }));
      }
    }
    left->is_first = !again;
    if (!again) left->requests.pop_front();
    const auto pause = again ? left->pause : std::chrono::seconds(0);
    left->pause = again ? std::min(left->pause * 2, kLongestPause) : kFirstPause;
    mount.later(pause, [&mount, left] {
      mount.disk().post(Gate::guard(mount.gate(), [&mount, left] { resume(mount, left); }));
    });
  };
  auto op = std::make_shared<Operation>(Caller());
  op->note(kRecorded);  // by `sent`
  drive<void>(
      mount, Counted::write, std::move(op),
      as_attempt([&mount, request](const OperationPtr& by) { return send_again(mount, by, request); }),
      [request] { return request->path; }, Reply<void>(std::move(sent)));
}

}  // namespace

Async<RequestAnswer> create_record(Mount& mount, OperationPtr op, std::string path, std::string collection,
                                   JsonObject body) {
  PLAYFS_CO_TRY(const bool is_dry, take_dry_run(body));
  std::vector<RequestStep> steps{{collection, std::move(body)}};
  if (is_dry) {
    PLAYFS_AWAIT_CHECK(check_is_free(mount, op, steps.front()));
    co_return RequestAnswer{plan_document(steps)};
  }
  auto request = std::make_shared<JournalledRequest>();
  PLAYFS_AWAIT(const RecordPartPtr part, send_once(mount, op, std::move(path), std::move(steps), request));
  PLAYFS_AWAIT_CHECK(until_listings_are_dropped(mount, op, collection, "told"));
  co_return RequestAnswer{shown_text_of(mount, collection, part->record.id, text_of_record, *part)};
}

Async<RequestAnswer> create_thread(Mount& mount, OperationPtr op, std::string path, JsonObject thread,
                                   JsonObject message) {
  PLAYFS_CO_TRY(const bool is_dry, take_dry_run(thread));
  std::vector<RequestStep> steps{{"threads", thread}, {"messages", std::move(message)}};
  if (is_dry) co_return RequestAnswer{plan_document(steps)};
  auto request = std::make_shared<JournalledRequest>();
  PLAYFS_AWAIT(const RecordPartPtr part, send_once(mount, op, std::move(path), std::move(steps), request));
  for (const char* collection : {"threads", "messages"})
    PLAYFS_AWAIT_CHECK(until_listings_are_dropped(mount, op, collection, std::string("told ") + collection));
  JsonObject made{{"id", request->steps[0].made}};
  for (const auto& [name, value] : thread) made.set(name, value);
  made.set("first_message", part->record.id);
  co_return RequestAnswer{wire::to_pretty_text(made)};
}

void resume_requests(Mount& mount) {
  if (mount.options().read_only) return;
  auto find = [&mount, gate = mount.gate()] {
    auto ticket = gate->enter();
    if (!ticket) return;
    auto left = mount.journal().left_behind();
    for (const auto& [path, error] : left.drafts) mount.site().events().error(path, error);
    for (const Error& error : left.unreadable) mount.site().events().error(".playfs/errors.ndjson", error);
    std::map<std::string, std::shared_ptr<Resumed>> files;
    for (JournalledRequest& each : left.requests) {
      auto& file = files.try_emplace(each.path, std::make_shared<Resumed>()).first->second;
      file->requests.push_back(std::make_shared<JournalledRequest>(std::move(each)));
    }
    for (const auto& [path, file] : files) resume(mount, file);
  };
  mount.disk().post(std::move(find));
}

Error with_advice(Error error, const std::string& lost, const std::string& later) {
  const Reached reached = traits_of(error.code).reached;
  if (reached == Reached::decision || reached == Reached::nobody) return error;
  const std::string& advice = error.code == ErrorCode::rate_limited ? later : lost;
  error.hint = advice + (error.hint.empty() ? "" : "; " + error.hint);
  return error;
}

void set_default_agent(const Mount& mount, JsonObject& body) {
  if (!body.find("agent") && !mount.options().agent.empty()) body.set("agent", mount.options().agent);
}

}  // namespace playfs::vfs
