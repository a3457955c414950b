// The queue around the engine, as callers see it. publisher_thread.cpp has what its thread does.
#include "publish/publisher.h"

#include <algorithm>
#include <utility>

#include "publish/damaged_journal.h"
#include "publish/lost_base.h"
#include "publish/publisher_state.h"

namespace playfs::publish {

// The queue.

void Publisher::State::enqueue(Waiters::Id waiter, const CommitRequest& request, const std::string& tx) {
  {
    MutexLock lock(mutex);
    if (stopping) return;
  }
  Status ready = stage.check_disk();  // on failure nothing can be frozen
  if (ready && request.queueing) request.queueing(tx);
  if (ready && request.resolved) ready = stage.accept_conflicted(tx);
  if (!ready) {
    waiters.answer_all(tx, fail(ready.error()));
    return;
  }
  if (Status stored = journal->enqueue(tx, request.agent, request.message, request.allow_merge); !stored) {
    waiters.answer_all(tx, fail(stored.error().while_doing("journal the commit")));
    return;
  }
  waiters.is_journalled(tx);
  if (request.journalled) request.journalled();
  wake();
  auto front = journal->front();
  bool is_behind = front && *front && (*front)->tx != tx;
  if (!request.wait && is_behind) waiters.answer(waiter, pending_result(tx));
}

void Publisher::State::wake() {
  {
    MutexLock lock(mutex);
    has_work = true;
    changed.notify_all();
  }
  interrupt_reconcile();
}

void Publisher::State::interrupt_reconcile() {
  CancelSource visit;
  {
    MutexLock lock(mutex);
    if (!is_reconciling) return;
    visit = round;
  }
  visit.cancel();
}

CommitResult Publisher::State::pending_result(const std::string& tx) {
  MutexLock lock(mutex);
  CommitResult result;
  if (progress.tx == tx) result = progress.so_far;
  result.outcome = Outcome::pending;
  result.tx = tx;
  return result;
}

// The public interface.

namespace {
Error kept_aside(Error damage, const std::string& folder) {
  damage.message += "; it was set aside in " + folder;
  damage.hint = "wait: unfinished commits are looked for at the service, and staged again if they are not there";
  return damage;
}

std::vector<QueuedCommit> queue_of(std::vector<Publication> waiting) {
  std::vector<QueuedCommit> queue;
  for (auto& each : waiting) queue.push_back({std::move(each.tx), std::move(each.agent), std::move(each.message)});
  return queue;
}
}  // namespace

Publisher::Publisher(std::shared_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Publisher>> Publisher::open(const std::string& directory, ProjectId project, content::Site& site,
                                                   stage::Stage& stage, Executor& executor, const Clock& clock,
                                                   Random& random, Settled settled, PublisherOptions options) {
  auto state = std::make_shared<State>(std::move(project), site, stage, executor, clock, random, std::move(options));
  auto journal = Journal::open(directory, state->options.probe);
  if (!journal && journal.error().code == ErrorCode::corrupt) {
    PLAYFS_TRY(std::string folder, set_journal_aside(directory));
    site.events().error("projects/" + state->project.text(), kept_aside(journal.error(), folder));
    site.events().event("journal_set_aside", {{"project", state->project.text()}, {"folder", folder}});
    journal = Journal::open(directory, state->options.probe);
  }
  PLAYFS_TRY(state->journal, std::move(journal));
  state->upstream =
      std::make_unique<SiteUpstream>(site, state->project, std::max<std::size_t>(state->options.parallel_uploads, 1));
  state->upstream->until(state->stop.token());
  state->absences = std::make_unique<Absences>(*state->upstream, clock, state->options.late_arrival);
  state->settled = std::move(settled);
  state->merging = std::make_unique<Merging>(*state->upstream);
  state->integration =
      std::make_unique<Integration>(*state->upstream, *state->merging, *state->journal, stage, state->settled);
  state->layers = std::make_unique<StageLayers>(stage, *state->integration, state->options.frozen);
  state->engine = std::make_unique<PublicationEngine>(
      PublicationEngine::Parts{.project = state->project,
                               .upstream = *state->upstream,
                               .absences = *state->absences,
                               .layers = *state->layers,
                               .journal = *state->journal,
                               .events = site.events(),
                               .random = random,
                               .clock = clock,
                               .cancel = state->stop.token(),
                               .policy = state->options.policy,
                               .progress = [state = state.get()](const Progress& now) { state->has_progress(now); },
                               .merging = *state->merging,
                               .late_arrival = state->options.late_arrival,
                               .merges_first = state->options.merges_first});
  PLAYFS_CHECK(end_dry_run(stage));
  PLAYFS_CHECK(state->engine->recover());
  PLAYFS_TRY(auto waiting, state->journal->waiting());
  if (state->options.may_go_on) PLAYFS_CHECK(state->options.may_go_on(queue_of(waiting)));
  PLAYFS_TRY(auto last, state->journal->last());
  if (last) {
    state->waiters.answer_all(last->tx, result_of(*last));
    MutexLock lock(state->mutex);
    state->last = result_of(*last);
  }
  for (const Publication& each : waiting) {
    state->waiters.begin(each.tx);
    state->waiters.is_journalled(each.tx);
  }
  std::unique_ptr<Publisher> publisher(new Publisher(state));
  publisher->reconcile();
  state->thread = std::thread([state = state.get()] { state->run(); });
  return publisher;
}

Publisher::~Publisher() {
  CancelSource round;
  {
    MutexLock lock(state_->mutex);
    state_->stopping = true;
    state_->changed.notify_all();
    round = state_->round;
  }
  state_->stop.cancel();
  round.cancel();
  state_->thread.join();
  state_->refuse_jobs(Error{ErrorCode::interrupted, "playfs is shutting down"});
  std::vector<Callback<Cancelled>> asked;
  {
    MutexLock lock(state_->mutex);
    asked.swap(state_->cancelling);
  }
  for (auto& done : asked) done(fail(ErrorCode::interrupted, "playfs is shutting down"));
  state_->waiters.answer_rest();
}

void Publisher::commit(CommitRequest request, CancelToken cancel, Callback<CommitResult> done) {
  std::string tx = state_->random.hex(kTxDigits);
  state_->waiters.begin(tx);
  auto id = state_->waiters.add(tx, request.wait, std::move(done));
  state_->waiters.keep(id, cancel.on_cancel([weak = std::weak_ptr(state_), id, tx] {
    if (auto state = weak.lock()) state->waiters.answer(id, state->pending_result(tx));
  }));
  state_->executor.post([state = state_, id, request = std::move(request), tx] { state->enqueue(id, request, tx); });
}

void Publisher::outcome_of(const std::string& tx, bool wait, CancelToken cancel, Callback<CommitResult> done) {
  Waiters& waiters = state_->waiters;
  auto id = waiters.add(tx, wait, std::move(done));
  waiters.keep(id, cancel.on_cancel([weak = std::weak_ptr(state_), id, tx] {
    if (auto state = weak.lock()) state->waiters.answer(id, state->pending_result(tx));
  }));
  // Check in this order: a commit that ends in between answers all waiters, which include this one by now.
  const bool is_under_way = waiters.is_under_way(tx);
  if (auto outcome = waiters.outcome_of(tx)) return waiters.answer(id, *std::move(outcome));
  if (is_under_way && !wait) return waiters.answer(id, state_->pending_result(tx));
  if (is_under_way) return;
  waiters.answer(id, fail(ErrorCode::not_found, "the outcome of commit " + tx + " is no longer known",
                          "playfs log shows what was published, playfs status what is staged"));
}

void Publisher::update(RevisionTreePtr head, CancelToken cancel, Callback<Integrated> done) {
  auto bring_in = [state = state_.get(), head = std::move(head),
                   asked_on = id_of(state_->stage.base())]() -> Result<Integrated> {
    PLAYFS_TRY(Integrated updated, state->integration->update(head, asked_on));
    // Whatever the base was before, it is on head's line now, or the next commit merges it with head.
    if (updated.base == head->revision.id) PLAYFS_CHECK(state->journal->record_no_branch());
    return updated;
  };
  state_->add_job<Integrated>(std::move(cancel), std::move(done), std::move(bring_in));
}

void Publisher::merge(RevisionTreePtr revision, CancelToken cancel, Callback<Integrated> done) {
  state_->add_job<Integrated>(
      std::move(cancel), std::move(done),
      [state = state_.get(), revision = std::move(revision)] { return state->integration->merge(revision); });
}

void Publisher::keep_lost_base(RevisionTreePtr head, CancelToken cancel, Callback<bool> done) {
  state_->add_job<bool>(std::move(cancel), std::move(done),
                        [state = state_.get(), head = std::move(head)] { return state->keep_lost_base(head); });
}

Result<bool> Publisher::State::keep_lost_base(const RevisionTreePtr& head) {
  RevisionTreePtr base = stage.base();
  if (!base) return false;
  // A commit in progress detects it by itself, and the tree is then based on what it publishes.
  PLAYFS_TRY(auto pending, stage.pending());
  if (pending) return fail(ErrorCode::busy, "a publication is in progress", "wait for it to finish: playfs status");
  auto known = site.try_head(project);
  if (known) static_cast<void>(absences->check_head(known->project));
  const BaseParts parts{project, *upstream, *absences, *merging, *journal, site.events()};
  PLAYFS_TRY(auto fate, find_fate(parts, base, head, known ? known->project.created_at : base->revision.created_at));
  if (!fate.is_lost) return false;
  PLAYFS_CHECK(keep_what_was_lost(*upstream, *absences, stage, fate.survivor, settled));
  // Unavailable content of the base is a reference to another revision only now.
  keep_what_lies_elsewhere();
  return true;
}

void Publisher::saw(const RevisionId& revision) {
  state_->absences->saw([&](const RevisionId& id) { return id == revision; });
}

Status Publisher::check_head(const Project& project) { return state_->absences->check_head(project); }

std::optional<LostBase> Publisher::lost_base() const {
  auto lost = state_->journal->lost_base();
  return lost ? *lost : std::nullopt;
}

void Publisher::forget_lost_base() {
  // If that cannot be written, the next commit forgets it.
  if (auto lost = state_->journal->lost_base(); lost && *lost)
    if (Status forgotten = state_->journal->record_no_lost_base(); !forgotten)
      state_->site.events().error("projects/" + state_->project.text(), forgotten.error());
}

void Publisher::plan(CancelToken cancel, Callback<PlannedCommit> done) {
  state_->add_job<PlannedCommit>(std::move(cancel), std::move(done), [state = state_.get()]() -> Result<PlannedCommit> {
    PLAYFS_TRY(auto planned, dry_run(state->stage, *state->engine, state->options.agent));
    planned.id = state->random.hex(kTxDigits);
    MutexLock lock(state->mutex);
    state->planned = planned;
    return planned;
  });
}

void Publisher::cancel(Callback<Cancelled> done) {
  bool interrupts = false;
  CancelSource round;
  {
    MutexLock lock(state_->mutex);
    if (!state_->stopping) {
      state_->cancelling.push_back(std::exchange(done, {}));
      state_->changed.notify_all();
      // A POST is not interrupted, because its response is needed. Reading a long log is, and resumes later.
      interrupts = state_->progress.phase < Phase::posting || state_->progress.reading;
      round = state_->round;
    }
  }
  if (done) return done(fail(ErrorCode::interrupted, "playfs is shutting down"));
  if (interrupts) round.cancel();
}

void Publisher::reconcile() {
  MutexLock lock(state_->mutex);
  state_->wants_reconcile = state_->options.reconciles;
  state_->changed.notify_all();
}

Progress Publisher::progress() const {
  MutexLock lock(state_->mutex);
  Progress progress = state_->progress;
  if (progress.phase == Phase::uploading)
    if (auto left =
            state_->pace.left(progress.so_far.chunks_total - progress.so_far.chunks_done, state_->clock.steady()))
      progress.seconds_left = static_cast<std::uint32_t>(left->count());
  if (progress.last_error && progress.last_error->code == ErrorCode::rate_limited) {
    auto left = std::chrono::ceil<std::chrono::seconds>(state_->goes_on - state_->clock.steady()).count();
    progress.so_far.retry_after_s = static_cast<std::uint32_t>(std::max<decltype(left)>(left, 0));
  }
  return progress;
}

Result<std::vector<QueuedCommit>> Publisher::queue() const {
  PLAYFS_TRY(auto waiting, state_->journal->waiting());
  return queue_of(std::move(waiting));
}

std::optional<PlannedCommit> Publisher::last_plan() const {
  MutexLock lock(state_->mutex);
  return state_->planned;
}

std::optional<Result<CommitResult>> Publisher::last() const {
  MutexLock lock(state_->mutex);
  return state_->last;
}

std::vector<RevisionId> Publisher::left_out() const {
  std::vector<RevisionId> revisions;
  auto left_out = state_->journal->left_out();
  if (!left_out) return revisions;  // the branches that the list of revisions shows are named all the same
  for (const auto& [id, time] : *left_out) revisions.push_back(id);
  return revisions;
}

std::optional<RevisionId> Publisher::branch() const {
  auto branch = state_->journal->branch();
  auto base = state_->stage.base();
  if (!branch || branch->empty() || !base || base->revision.id != *branch) return std::nullopt;
  // Another client may have merged it since. Look only as far as no request is needed.
  if (auto head = state_->site.try_head(state_->project)) {
    const RevisionId& latest = head->project.latest_revision;
    auto tree = latest.empty() ? nullptr : state_->site.try_revision(latest);
    if (latest == *branch) return std::nullopt;
    if (tree && std::count(tree->revision.parents.begin(), tree->revision.parents.end(), *branch)) return std::nullopt;
  }
  return *branch;
}

}  // namespace playfs::publish
