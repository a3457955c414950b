#include "content/heads.h"

#include <algorithm>

#include "base/text.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::content {

namespace {
constexpr const char* kCollection = "projects";
}

Heads::ProjectPtr& Heads::state_of(const ProjectId& id) {
  if (auto* found = projects_.find(id)) return *found;
  static_cast<void>(projects_.insert(id, std::make_shared<Project>()));
  return *projects_.find(id);
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

void Heads::load(const ProjectId& id) {
  auto stored = context_.records.record(context_.site, kCollection, id.text());
  auto record = stored ? Context::read(*stored, id.text()) : std::nullopt;
  if (!record) return;
  auto project = wire::decode_project(std::move(*record));
  if (!project) return;
  MutexLock lock(mutex_);
  auto& state = *state_of(id);
  if (state.head) return;
  // As old as to be asked for again at once; what this process shows of it counts as known to its listeners.
  state.announced = project->latest_revision;
  state.head = Head{std::move(*project), context_.clock.steady() - context_.options.refresh};
  state.text = std::move(stored->text);
  state.etag = std::move(stored->etag);
}

bool Heads::is_fresh(const Head& head) const {
  return context_.clock.steady() - head.fetched_at < context_.options.refresh;
}

void Heads::get(const ProjectId& id, const CancelToken& cancel, Callback<Head> done) {
  auto head = known(id);
  if (head && is_fresh(*head)) return done(std::move(*head));
  auto old_one_will_do = [head = std::move(head), done = std::move(done)](Result<Head> result) mutable {
    if (!result && head && is_away(result.error())) result = std::move(*head);
    done(std::move(result));
  };
  if (!flights_.join(id, cancel, std::move(old_one_will_do))) return;
  ask(id, [this, id](Result<Head> result) { flights_.land(id, result); });
}

void Heads::refresh(const ProjectId& id, const CancelToken& cancel, Callback<Head> done) {
  // A flight that is under way may carry an answer from before the caller's own PATCH: this joins none.
  static_cast<void>(known(id));  // brings the ETag from the disk
  const std::uint64_t flight = next_refresh_++;
  if (!refreshes_.join(flight, cancel, std::move(done))) return;
  ask(id, [this, flight](Result<Head> result) { refreshes_.land(flight, result); });
}

void Heads::ask(const ProjectId& id, Callback<Head> answered) {
  if (id.empty() || id.text().size() > kMaxIdLength)
    return answered(fail(ErrorCode::not_found, "no project can have the id " + escape_for_terminal(id.text())));
  Request request{id, 0, context_.clock.steady()};
  std::string etag;
  {
    MutexLock lock(mutex_);
    request.ticket = ++last_ticket_;
    if (auto& state = *state_of(id); state.head) etag = state.etag;
  }
  using Answer = Result<remote::Fetched<playfs::Project>>;
  context_.client.get_project(id, std::move(etag), context_.stop.token(),
                              context_.answered<remote::Fetched<playfs::Project>>(
                                  [this, request, answered = std::move(answered)](Answer answer) mutable {
                                    answered(arrived(request, std::move(answer)));
                                    announce(request.id);
                                  }));
}

Result<Head> Heads::arrived(const Request& request, Result<remote::Fetched<playfs::Project>> answer) {
  if (!answer && answer.error().code == ErrorCode::not_found)
    context_.records.forget_record(context_.site, kCollection, request.id.text());
  std::optional<cache::StoredRecord> to_store;
  auto head = apply(request, std::move(answer), to_store);
  if (to_store) context_.records.store_record(context_.site, kCollection, request.id.text(), *to_store);
  return head;
}

Result<Head> Heads::apply(const Request& request, Result<remote::Fetched<playfs::Project>> answer,
                          std::optional<cache::StoredRecord>& to_store) {
  std::string text;
  if (answer && answer->value) text = wire::to_text(wire::encode_record(answer->value->raw));

  MutexLock lock(mutex_);
  auto& state = *state_of(request.id);
  if (!answer) {
    if (answer.error().code == ErrorCode::not_found) state.head.reset();
    return fail(std::move(answer).error());
  }
  const bool newest = request.ticket > state.applied;
  if (!answer->value) {
    if (!state.head) return fail(ErrorCode::protocol, "\"not modified\" for a project that was never read");
    if (newest) state.head->fetched_at = std::max(state.head->fetched_at, request.asked_at);
    return *state.head;
  }
  Head head{std::move(*answer->value), request.asked_at};
  if (!newest) return head;
  if (!state.announced) state.announced = head.project.latest_revision;
  if (text != state.text || answer->etag != state.etag)
    to_store = cache::StoredRecord{text, answer->etag, context_.clock.wall()};
  state.applied = request.ticket;
  state.text = std::move(text);
  state.etag = std::move(answer->etag);
  state.head = head;
  return head;
}

void Heads::announce(const ProjectId& id) {
  RevisionId revision;
  {
    MutexLock lock(mutex_);
    auto& state = *state_of(id);
    if (!state.head) return;
    revision = state.head->project.latest_revision;
    if (state.announced == revision || state.announcing == revision) return;
    if (state.failed == revision && state.failed_for_good) return;
    state.announcing = revision;
  }
  if (revision.empty()) return announced(id, revision, RevisionTreePtr());
  revisions_.get(revision, {}, context_.guarded([this, id, revision](Result<RevisionTreePtr> tree) {
    announced(id, revision, tree);
  }));
}

void Heads::announced(const ProjectId& id, const RevisionId& revision, const Result<RevisionTreePtr>& tree) {
  bool first_failure = false;
  RevisionId previous;
  {
    MutexLock lock(mutex_);
    auto& state = *state_of(id);
    state.announcing.reset();
    if (tree) {
      previous = state.announced.value_or(RevisionId());
      state.announced = revision;
    } else if (!is_away(tree.error()) && tree.error().code != ErrorCode::interrupted) {
      first_failure = state.failed != revision;
      state.failed = revision;
      // A replica may be behind with a record, but a record does not change.
      state.failed_for_good = tree.error().code != ErrorCode::not_found;
    }
  }
  if (tree) {
    JsonObject moved{{"project", id.text()}, {"revision", revision.text()}, {"previous", previous.text()}};
    if (*tree) {
      moved.append("agent", (*tree)->revision.agent);
      moved.append("message", (*tree)->revision.message);
    }
    context_.events.event("head_moved", std::move(moved));
    tell(id, *tree);
    // It may have moved on while this one was fetched.
    announce(id);
  } else if (first_failure) {
    context_.events.error("projects/" + id.text(), tree.error().while_doing("its latest revision"));
  }
}

void Heads::tell(const ProjectId& id, const RevisionTreePtr& tree) {
  std::vector<std::shared_ptr<const Changed>> listeners;
  {
    MutexLock lock(mutex_);
    listeners = listeners_;
  }
  for (const auto& listener : listeners) (*listener)(id, tree);
}

void Heads::on_changed(Changed changed) {
  MutexLock lock(mutex_);
  listeners_.push_back(std::make_shared<const Changed>(std::move(changed)));
}

void Heads::follow(const ProjectId& id) {
  std::chrono::nanoseconds delay{0};
  {
    MutexLock lock(mutex_);
    auto& state = *state_of(id);
    state.touched = context_.clock.steady();
    if (std::exchange(state.polled, true)) return;
    if (state.head) delay = state.head->fetched_at + context_.options.refresh - state.touched;
  }
  poll_after(id, delay);
}

void Heads::poll_after(const ProjectId& id, std::chrono::nanoseconds delay) {
  context_.executor.post_after(std::max(delay, std::chrono::nanoseconds(0)),
                               context_.guarded([this, id] { poll(id); }));
}

void Heads::poll(const ProjectId& id) {
  std::chrono::nanoseconds rest{0};
  {
    MutexLock lock(mutex_);
    auto* found = projects_.find(id);
    if (!found) return;
    auto& state = **found;
    const SteadyTime now = context_.clock.steady();
    if (now - state.touched >= context_.options.in_use) {
      state.polled = false;
      return;
    }
    // Somebody else may have asked in the meantime.
    if (state.head) rest = state.head->fetched_at + context_.options.refresh - now;
  }
  if (rest > std::chrono::nanoseconds(0)) return poll_after(id, rest);
  // The next one is counted from the answer, so that a slow service is not asked by many at once.
  get(id, {}, context_.guarded([this, id](const Result<Head>&) { poll_after(id, context_.options.refresh); }));
}

}  // namespace playfs::content
