#include "content/heads.h"

#include <algorithm>

#include "base/text.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::content {

namespace {
constexpr const char* kProjects = "projects";

Error not_its_own(const RevisionId& revision) {
  return {ErrorCode::refused_input, "revision " + escape_for_terminal(revision.text()) + " belongs to another project",
          "the project's last own revision is shown until latest_revision names one again"};
}
}  // namespace

bool SeenHead::is_newer_than(const Project& record) const {
  auto time = parse_iso8601(record.raw.updated_at);
  return time && *time < changed_at && revision != record.latest_revision;
}

Heads::ProjectPtr& Heads::state_of(const ProjectId& id) {
  if (auto* found = projects_.find(id)) return *found;
  static_cast<void>(projects_.insert(id, std::make_shared<Project>(), kOrdinary));
  return *projects_.find(id);
}

void Heads::count_bytes(const ProjectId& id) {
  const ProjectPtr state = state_of(id);
  const std::size_t bytes = state->text.size() + (state->head ? state->head->project.name.size() : 0);
  static_cast<void>(projects_.insert(id, state, std::max(kOrdinary, bytes)));
}

std::optional<Head> Heads::known(const ProjectId& id) {
  auto in_memory = [&]() -> std::optional<Head> {
    MutexLock lock(mutex_);
    auto* found = projects_.find(id);
    return found ? (*found)->head : std::nullopt;
  };
  if (auto head = in_memory()) return head;
  load(id);
  return in_memory();
}

void Heads::Project::saw(const playfs::Project& project) {
  auto changed_at = parse_iso8601(project.raw.updated_at);
  if (changed_at && (!newest_seen || *changed_at >= newest_seen->changed_at))
    newest_seen = SeenHead{*changed_at, project.latest_revision};
}

void Heads::load(const ProjectId& id) {
  auto stored = context_.records.record(context_.site, kProjects, id.text());
  auto record = stored ? SiteContext::read(stored->text, id.text()) : std::nullopt;
  if (!record) return;
  auto project = wire::decode_project(std::move(*record));
  if (!project) return;
  project->raw.fields = {};
  const RevisionId& latest = project->latest_revision;
  auto tree = latest.empty() ? nullptr : revisions_.known(latest);
  MutexLock lock(mutex_);
  auto& state = *state_of(id);
  if (state.head) return;
  // Stale, so that it is requested again at once. What this process shows counts as announced to listeners.
  state.announced = latest;
  Head head{std::move(*project), context_.clock.steady() - context_.options.refresh, std::nullopt, nullptr};
  if (state.announced->empty() || (tree && tree->revision.project == id)) head.shown = *state.announced;
  state.saw(head.project);
  state.head = std::move(head);
  state.text = std::move(stored->text);
  state.etag = std::move(stored->etag);
  count_bytes(id);
}

bool Heads::is_fresh(const Head& head) {
  return context_.clock.steady() - head.fetched_at < context_.options.refresh || is_told(head.project.id);
}

void Heads::get(const ProjectId& id, const CancelToken& cancel, Callback<Head> done) {
  auto head = known(id);
  if (head && is_fresh(*head)) return done(std::move(*head));
  auto old_one_will_do = [head = std::move(head), done = std::move(done)](Result<Head> result) mutable {
    if (!result && head && is_outage(result.error().code)) result = std::move(*head);
    done(std::move(result));
  };
  if (!flights_.join(id, cancel, std::move(old_one_will_do))) return;
  // An earlier flight may have landed since the check above.
  if (auto landed = known(id); landed && is_fresh(*landed)) return flights_.land(id, std::move(*landed));
  ask(id, [this, id](Result<Head> result) { flights_.land(id, result); });
}

void Heads::refresh(const ProjectId& id, const CancelToken& cancel, Callback<Head> done) {
  // Joins no request in flight: its response may predate the caller's own PATCH.
  static_cast<void>(known(id));  // loads the ETag from disk
  const std::uint64_t flight = next_refresh_++;
  if (!refreshes_.join(flight, cancel, std::move(done))) return;
  ask(id, [this, flight](Result<Head> result) { refreshes_.land(flight, result); });
}

void Heads::ask(const ProjectId& id, Callback<Head> answered) {
  if (id.empty() || id.text().size() > kMaxIdLength)
    return answered(fail(ErrorCode::not_found, "not a valid project id: " + escape_for_terminal(id.text())));
  Request request{id, 0, context_.clock.steady(), context_.live.period()};
  std::string etag;
  {
    MutexLock lock(mutex_);
    request.ticket = ++last_ticket_;
    if (auto& state = *state_of(id); state.head) etag = state.etag;
  }
  using Answer = Result<remote::Fetched<playfs::Project>>;
  context_.client.get_project(id, std::move(etag), context_.gate->closing(),
                              context_.answered<remote::Fetched<playfs::Project>>(
                                  [this, request, question = context_.patience.ask(question_of(id)),
                                   answered = std::move(answered)](Answer answer) mutable {
                                    const bool is_answer = answer.has_value();
                                    auto head = arrived(request, std::move(answer));
                                    question.reset();
                                    // Runs before the answer, so that a publisher finds its new revision shown.
                                    if (is_answer) follow_up(request.id);
                                    answered(std::move(head));
                                  }));
}

Result<Head> Heads::arrived(const Request& request, Result<remote::Fetched<playfs::Project>> answer) {
  if (!answer && answer.error().code == ErrorCode::not_found)
    context_.records.forget_record(context_.site, kProjects, request.id.text());
  std::string text;
  std::optional<Record> whole;
  if (answer && answer->value) {
    Record& raw = answer->value->raw;
    text = wire::to_text(wire::encode_record(raw));
    JsonObject fields;
    std::swap(fields, raw.fields);  // a Head is copied, and kept for each project
    whole = raw;
    whole->fields = std::move(fields);
  }
  std::optional<cache::StoredRecord> to_store;
  auto head = apply(request, std::move(answer), std::move(text), to_store);
  if (to_store) context_.records.store_record(context_.site, kProjects, request.id.text(), *to_store);
  if (whole && head) lists_.seen(kProjects, *whole);
  return head;
}

Result<Head> Heads::apply(const Request& request, Result<remote::Fetched<playfs::Project>> answer, std::string text,
                          std::optional<cache::StoredRecord>& to_store) {
  MutexLock lock(mutex_);
  auto& state = *state_of(request.id);
  if (!answer) {
    if (answer.error().code == ErrorCode::not_found) state.head.reset();
    return fail(std::move(answer).error());
  }
  const bool newest = request.ticket > state.applied;
  if (newest && request.ticket > state.confirmed) {
    state.confirmed = request.ticket;
    state.period = request.period;
  }
  if (!answer->value) {
    if (!state.head) return fail(ErrorCode::protocol, "\"not modified\" for a project that was never read");
    if (newest) state.head->fetched_at = std::max(state.head->fetched_at, request.asked_at);
    return *state.head;
  }
  Head head{std::move(*answer->value), request.asked_at, std::nullopt, nullptr};
  const RevisionId& latest = head.project.latest_revision;
  state.saw(head.project);
  if (state.head) head.shown = state.head->shown;
  else if (latest.empty()) head.shown = latest;
  if (state.head && state.head->project.latest_revision == latest) head.refused = state.head->refused;
  if (!newest) return head;
  if (!state.announced) state.announced = latest;
  if (text != state.text || answer->etag != state.etag)
    to_store = cache::StoredRecord{text, answer->etag, context_.clock.wall()};
  state.applied = request.ticket;
  state.text = std::move(text);
  state.etag = std::move(answer->etag);
  state.head = head;
  count_bytes(request.id);
  return head;
}

std::optional<SeenHead> Heads::newest_seen(const ProjectId& id) {
  MutexLock lock(mutex_);
  return state_of(id)->newest_seen;
}

void Heads::follow_up(const ProjectId& id) {
  bool is_new = false;
  {
    MutexLock lock(mutex_);
    auto& state = *state_of(id);
    if (!state.head) return;
    // For a project that nothing has shown yet, nothing is fetched.
    is_new = !state.head->is_settled() && (state.head->shown || state.announced != state.head->project.latest_revision);
  }
  auto tell = context_.guarded([this, id](const Result<Head>&) {
    std::vector<std::shared_ptr<const Seen>> listeners;
    {
      MutexLock lock(mutex_);
      listeners = seen_;
    }
    for (const auto& listener : listeners) (*listener)(id);
  });
  if (is_new) settle(id, {}, std::move(tell));
  else tell(fail(ErrorCode::internal, ""));
}

void Heads::show(const ProjectId& id, const CancelToken& cancel, Callback<Head> done) {
  get(id, cancel, [this, id, cancel, done = std::move(done)](Result<Head> head) mutable {
    if (head) settle(id, cancel, std::move(done));
    else done(std::move(head));
  });
}

void Heads::settle(const ProjectId& id, const CancelToken& cancel, Callback<Head> done) {
  // The leader fetches the latest revision. So does a caller that finds another one latest than that being fetched,
  // which may never arrive.
  bool looks = settling_.join(id, cancel, std::move(done));
  if (!looks) {
    MutexLock lock(mutex_);
    auto& state = *state_of(id);
    looks = state.head && !state.head->is_settled() && state.looked_at &&
            state.looked_at != state.head->project.latest_revision;
  }
  if (looks) look_at_latest(id);
}

void Heads::look_at_latest(const ProjectId& id) {
  std::optional<Head> head;
  bool is_settled = false;
  std::uint64_t look = 0;
  {
    MutexLock lock(mutex_);
    auto& state = *state_of(id);
    head = state.head;
    is_settled = head && state.head->is_settled();
    if (head && !is_settled) {
      look = ++state.looks;
      state.looked_at = head->project.latest_revision;
    }
  }
  if (!head) return settling_.land(id, fail(ErrorCode::not_found, "the project is gone"));
  if (is_settled && !head->shown) return settling_.land(id, fail(*head->refused));
  if (is_settled) return settling_.land(id, std::move(*head));
  const RevisionId latest = head->project.latest_revision;
  if (latest.empty()) return latest_came(id, latest, look, RevisionTreePtr());
  auto question = context_.patience.ask(question_of(id));
  revisions_.get(latest, id, {},
                 context_.guarded([this, id, latest, look, question](Result<RevisionTreePtr> tree) mutable {
                   question.reset();
                   latest_came(id, latest, look, std::move(tree));
                 }));
}

void Heads::latest_came(const ProjectId& id, const RevisionId& revision, std::uint64_t look,
                        Result<RevisionTreePtr> tree) {
  if (tree && *tree && (*tree)->revision.project != id) tree = fail(not_its_own(revision));
  bool is_news = false;
  bool first_failure = false;
  RevisionId previous;
  std::optional<Head> head;
  {
    MutexLock lock(mutex_);
    auto& state = *state_of(id);
    if (look < state.shown_by) return;  // a later one arrived and continued from there
    if (look == state.looks) state.looked_at.reset();
    if (tree) {
      state.shown_by = look;
      previous = state.announced.value_or(RevisionId());
      is_news = std::exchange(state.announced, revision) != revision;
      if (state.head) state.head->shown = revision;
    } else if (!is_outage(tree.error().code) && tree.error().code != ErrorCode::interrupted) {
      first_failure = std::exchange(state.failed, revision) != revision;
      // not_found may be a lagging replica. Any other failure is final, since records do not change.
      if (tree.error().code != ErrorCode::not_found && state.head && state.head->project.latest_revision == revision)
        state.head->refused = std::make_shared<const Error>(tree.error());
    }
    head = state.head;
  }
  if (first_failure)
    context_.events.error("projects/" + id.text(), tree.error().while_doing("read its latest revision"));
  if (is_news) took_over(id, previous, *tree);
  // The head may have moved on during the fetch.
  if (head && head->project.latest_revision != revision) return look_at_latest(id);
  if (head && head->shown) return settling_.land(id, std::move(*head));
  settling_.land(id, tree ? Result<Head>(fail(ErrorCode::not_found, "the project is gone"))
                          : Result<Head>(fail(std::move(tree).error())));
}

void Heads::took_over(const ProjectId& id, const RevisionId& previous, const RevisionTreePtr& tree) {
  JsonObject moved{
      {"project", id.text()}, {"revision", tree ? tree->revision.id.text() : ""}, {"previous", previous.text()}};
  if (tree) {
    moved.append("agent", tree->revision.agent);
    moved.append("message", tree->revision.message);
  }
  context_.events.event("head_moved", std::move(moved));
  std::vector<std::shared_ptr<const Changed>> listeners;
  {
    MutexLock lock(mutex_);
    listeners = changed_;
  }
  for (const auto& listener : listeners) (*listener)(id, tree);
}

void Heads::on_changed(Changed changed) {
  MutexLock lock(mutex_);
  changed_.push_back(std::make_shared<const Changed>(std::move(changed)));
}

void Heads::on_seen(Seen seen) {
  MutexLock lock(mutex_);
  seen_.push_back(std::make_shared<const Seen>(std::move(seen)));
}

}  // namespace playfs::content
