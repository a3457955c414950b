// The queue around the engine: a thread that runs one publication after the other, rests where time has to heal an
// error, and answers those who wait.
#include "publish/publisher.h"

#include <algorithm>
#include <deque>
#include <map>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "publish/engine.h"
#include "publish/pace.h"
#include "publish/rest.h"

namespace playfs::publish {

namespace {
constexpr std::size_t kTxDigits = 32;  // 128 bits
}

struct Publisher::State : std::enable_shared_from_this<Publisher::State> {
  struct Waiter {
    std::string tx;
    Callback<CommitResult> done;
    bool wait = true;
    bool is_journalled = false;
    CancelToken::Registration on_cancel;
  };
  /// Something that the thread does between publications. Called with an error it only answers.
  using Job = std::function<void(std::optional<Error>)>;

  State(ProjectId project, content::Site& site, stage::Stage& stage, Executor& executor, const Clock& clock,
        Random& random, PublisherOptions options)
      : project(std::move(project)),
        site(site),
        stage(stage),
        executor(executor),
        clock(clock),
        random(random),
        options(std::move(options)) {}

  const ProjectId project;
  content::Site& site;
  stage::Stage& stage;
  Executor& executor;
  const Clock& clock;
  Random& random;
  const PublisherOptions options;
  std::unique_ptr<Journal> journal;
  CancelSource stop;
  std::unique_ptr<SiteUpstream> upstream;  // the thread's, as what follows
  Settled settled;
  std::unique_ptr<Merging> merging;
  std::unique_ptr<Integration> integration;
  std::unique_ptr<Layers> layers;
  std::unique_ptr<Engine> engine;
  std::thread thread;

  Mutex mutex;
  Condition changed;
  bool stopping PLAYFS_GUARDED_BY(mutex) = false;
  bool has_work PLAYFS_GUARDED_BY(mutex) = false;
  bool wants_visit PLAYFS_GUARDED_BY(mutex) = false;
  std::deque<Job> jobs PLAYFS_GUARDED_BY(mutex);
  std::uint64_t rest PLAYFS_GUARDED_BY(mutex) = 0;  ///< counts the rests, so that a late alarm ends no other
  bool is_rested PLAYFS_GUARDED_BY(mutex) = false;
  SteadyTime goes_on PLAYFS_GUARDED_BY(mutex);
  bool goes_on_later PLAYFS_GUARDED_BY(mutex) = false;
  Progress progress PLAYFS_GUARDED_BY(mutex);
  Pace pace PLAYFS_GUARDED_BY(mutex);           ///< of that
  CancelSource round PLAYFS_GUARDED_BY(mutex);  ///< ends what the thread does now
  std::vector<Callback<Cancelled>> cancelling PLAYFS_GUARDED_BY(mutex);
  std::vector<RevisionId> left_out PLAYFS_GUARDED_BY(mutex);
  std::optional<PlannedCommit> planned PLAYFS_GUARDED_BY(mutex);
  std::optional<Result<CommitResult>> last PLAYFS_GUARDED_BY(mutex);
  std::uint64_t next_waiter PLAYFS_GUARDED_BY(mutex) = 1;
  std::map<std::uint64_t, Waiter> waiters PLAYFS_GUARDED_BY(mutex);

  void run();
  std::optional<Error> run_front();
  bool answer_cancelling();
  Result<Cancelled> give_back();
  void run_jobs();
  void refuse_jobs(const Error& why);
  template <class T, class Work>
  void add_job(CancelToken cancel, Callback<T> done, Work work);
  void take_a_rest(const Error& error, int streak);
  void wait_for_work();
  void has_progress(const Progress& now);
  void has_ended(const Publication& publication);

  void enqueue(std::uint64_t waiter, const CommitRequest& request, const std::string& tx);
  void wake();
  void answer(std::uint64_t waiter, Result<CommitResult> result);
  template <class Wanted>
  void answer_all(const Wanted& wanted, const Result<CommitResult>& result);
  CommitResult pending_result(const std::string& tx);
};

// The thread.

void Publisher::State::run() {
  for (int streak = 0;;) {
    {
      MutexLock lock(mutex);
      if (stopping) return;
      has_work = false;
    }
    if (answer_cancelling()) continue;
    auto error = run_front();
    if (!error || answer_cancelling()) streak = 0;
    else take_a_rest(*error, ++streak);
  }
}

/// What has to be known before anything else is done. False: nobody has asked.
bool Publisher::State::answer_cancelling() {
  std::vector<Callback<Cancelled>> asked;
  {
    MutexLock lock(mutex);
    asked.swap(cancelling);
  }
  if (asked.empty()) return false;
  auto given_back = give_back();
  for (auto& done : asked) done(given_back);
  return true;
}

Result<Cancelled> Publisher::State::give_back() {
  Cancelled cancelled;
  PLAYFS_TRY(auto waiting, journal->waiting());
  if (waiting.empty()) return cancelled;
  Publication& front = waiting.front();
  cancelled.too_late = !Engine::can_be_cancelled(front);
  PLAYFS_CHECK(cancelled.too_late ? journal->drop_behind(front) : journal->record_cancelling(front));
  CommitResult result;
  result.outcome = Outcome::cancelled;
  for (const auto& each : waiting) {
    if (each.number == front.number) continue;
    ++cancelled.commits;
    answer_all([&](const Waiter& waiter) { return waiter.tx == each.tx; }, result);
  }
  if (cancelled.too_late) return cancelled;
  ++cancelled.commits;
  // Nothing is asked of the service for it. What fails here is done over when the thread comes to it.
  if (Status ran = engine->run(front); !ran) return fail(ran.error());
  has_ended(front);
  return cancelled;
}

/// Runs the oldest publication, or waits until there is one.
std::optional<Error> Publisher::State::run_front() {
  upstream->until(stop.token());
  run_jobs();
  auto front = journal->front();
  if (!front) return front.error();
  if (!*front) {
    wait_for_work();
    return std::nullopt;
  }
  CancelToken cancel;
  {
    MutexLock lock(mutex);
    if (!cancelling.empty()) return std::nullopt;
    if (progress.tx != (*front)->tx) pace = {};
    progress.tx = (*front)->tx;
    if (!stopping) round = CancelSource();
    cancel = round.token();
  }
  upstream->until(cancel);
  if (Status ran = engine->run(**front, cancel); !ran) return ran.error();
  has_ended(**front);
  return std::nullopt;
}

void Publisher::State::run_jobs() {
  for (;;) {
    Job job;
    {
      MutexLock lock(mutex);
      if (stopping || jobs.empty()) return;
      job = std::move(jobs.front());
      jobs.pop_front();
    }
    job(std::nullopt);
  }
}

void Publisher::State::refuse_jobs(const Error& why) {
  std::deque<Job> refused;
  {
    MutexLock lock(mutex);
    refused.swap(jobs);
  }
  for (const auto& job : refused) job(why);
}

template <class T, class Work>
void Publisher::State::add_job(CancelToken cancel, Callback<T> done, Work work) {
  auto shared = std::make_shared<Callback<T>>(std::move(done));
  Job job = [shared, cancel = std::move(cancel), work = std::move(work)](std::optional<Error> why) {
    if (!why && cancel.cancelled()) why = Error{ErrorCode::interrupted, "cancelled", {}, {}, 0, {}};
    (*shared)(why ? Result<T>(fail(*std::move(why))) : work());
  };
  {
    MutexLock lock(mutex);
    if (!stopping && goes_on_later) {
      // It may be hours.
    } else if (!stopping) {
      jobs.push_back(std::move(job));
      changed.notify_all();
      return;
    }
  }
  job(Error{ErrorCode::busy, "a publication is under way", "wait for it to end: playfs status", {}, 0, {}});
}

void Publisher::State::take_a_rest(const Error& error, int streak) {
  auto length = rest_after(error, streak, options.first_rest, options.longest_rest);
  std::uint64_t alarm = 0;
  std::string tx;
  {
    MutexLock lock(mutex);
    if (stopping) return;
    alarm = ++rest;
    is_rested = false;
    progress.last_error = error;
    goes_on = clock.steady() + length;
    goes_on_later = true;
    tx = progress.tx;
    if (error.code == ErrorCode::rate_limited && progress.phase == Phase::uploading)
      pace.is_refused(clock.steady(), goes_on);
  }
  refuse_jobs(Error{ErrorCode::busy,
                    "a publication is under way, and rests: " + error.message,
                    "wait for it to end: playfs status",
                    {},
                    0,
                    {}});
  // It may be long before it is frozen, and those who do not wait have it in the journal.
  answer_all([&](const Waiter& waiter) { return waiter.tx == tx && !waiter.wait; }, pending_result(tx));
  if (streak == 1) {
    site.events().error("commit", error);
    site.events().event("commit_waiting",
                        {{"tx", tx}, {"error", error.message}, {"goes_on_in_ms", std::int64_t{length.count()}}});
  }
  executor.post_after(length, [weak = weak_from_this(), alarm] {
    auto state = weak.lock();
    if (!state) return;
    MutexLock lock(state->mutex);
    if (state->rest == alarm) state->is_rested = true;
    state->changed.notify_all();
  });
  MutexLock lock(mutex);
  while (!stopping && !is_rested && cancelling.empty()) changed.wait(mutex);
  goes_on_later = false;
  progress.last_error.reset();
}

void Publisher::State::wait_for_work() {
  {
    MutexLock lock(mutex);
    progress = {};
    while (!stopping && !has_work && !wants_visit && jobs.empty() && cancelling.empty()) changed.wait(mutex);
    if (stopping || has_work || !jobs.empty() || !cancelling.empty() || !std::exchange(wants_visit, false)) return;
  }
  auto standing = engine->visit(options.agent);
  if (standing) {
    MutexLock lock(mutex);
    left_out.clear();
    for (const auto& each : standing->left_out) left_out.push_back(each.revision);
  }
  // Nobody waits for it, and the next one does it all again.
  if (!standing && !may_heal(standing.error().code))
    site.events().error("projects/" + project.text(), standing.error().while_doing("look after head"));
}

void Publisher::State::has_progress(const Progress& now) {
  std::string tx;
  {
    MutexLock lock(mutex);
    if (now.phase == Phase::uploading) {
      bool goes_on = progress.phase == Phase::uploading;
      pace.has_stored(goes_on ? now.so_far.chunks_done - progress.so_far.chunks_done : 0, clock.steady());
    }
    progress.phase = now.phase;
    progress.so_far = now.so_far;
    progress.bytes_done = now.bytes_done;
    progress.bytes_total = now.bytes_total;
    tx = progress.tx;
  }
  // Past freezing what is published is fixed: all that those who do not wait have to know.
  if (now.phase > Phase::freezing)
    answer_all([&](const Waiter& waiter) { return waiter.tx == tx && !waiter.wait; }, now.so_far);
}

void Publisher::State::has_ended(const Publication& publication) {
  auto result = result_of(publication);
  {
    MutexLock lock(mutex);
    last = result;
    progress = {};
  }
  answer_all([&](const Waiter& waiter) { return waiter.tx == publication.tx; }, result);
}

// Those who wait.

void Publisher::State::enqueue(std::uint64_t waiter, const CommitRequest& request, const std::string& tx) {
  {
    MutexLock lock(mutex);
    if (stopping) return;
  }
  if (Status resolved = request.resolved ? stage.record_conflicted({}) : Status(); !resolved) {
    answer(waiter, fail(resolved.error()));
    return;
  }
  if (Status stored = journal->enqueue(tx, request.agent, request.message, request.allow_merge); !stored) {
    answer(waiter, fail(stored.error().while_doing("journal the commit")));
    return;
  }
  {
    MutexLock lock(mutex);
    if (auto found = waiters.find(waiter); found != waiters.end()) found->second.is_journalled = true;
  }
  wake();
  auto front = journal->front();
  bool is_behind = front && *front && (*front)->tx != tx;
  if (!request.wait && is_behind) answer(waiter, pending_result(tx));
}

void Publisher::State::wake() {
  MutexLock lock(mutex);
  has_work = true;
  changed.notify_all();
}

void Publisher::State::answer(std::uint64_t waiter, Result<CommitResult> result) {
  Waiter taken;
  {
    MutexLock lock(mutex);
    auto found = waiters.find(waiter);
    if (found == waiters.end()) return;
    taken = std::move(found->second);
    waiters.erase(found);
  }
  taken.done(std::move(result));
}

template <class Wanted>
void Publisher::State::answer_all(const Wanted& wanted, const Result<CommitResult>& result) {
  std::vector<std::uint64_t> chosen;
  {
    MutexLock lock(mutex);
    for (const auto& [id, waiter] : waiters)
      if (wanted(waiter)) chosen.push_back(id);
  }
  for (auto id : chosen) answer(id, result);
}

CommitResult Publisher::State::pending_result(const std::string& tx) {
  MutexLock lock(mutex);
  CommitResult result;
  if (progress.tx == tx) result = progress.so_far;
  result.outcome = Outcome::pending;
  return result;
}

// The surface.

CommitResult result_of(const PlannedCommit& planned) {
  CommitResult result;
  result.outcome = planned.revision_size == 0 ? Outcome::nothing : Outcome::planned;
  result.files_changed = planned.files_changed;
  for (const auto& path : planned.paths) result.chunks_total += path.chunks;
  constexpr std::uint32_t kPostAndPatch = 2;
  if (result.outcome == Outcome::planned) result.writes_used = result.chunks_total + kPostAndPatch;
  return result;
}

Publisher::Publisher(std::shared_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Publisher>> Publisher::open(const std::string& directory, ProjectId project, content::Site& site,
                                                   stage::Stage& stage, Executor& executor, const Clock& clock,
                                                   Random& random, Settled settled, PublisherOptions options) {
  auto state = std::make_shared<State>(std::move(project), site, stage, executor, clock, random, std::move(options));
  PLAYFS_TRY(state->journal, Journal::open(directory, state->options.probe));
  state->upstream =
      std::make_unique<SiteUpstream>(site, state->project, std::max<std::size_t>(state->options.parallel_uploads, 1));
  state->upstream->until(state->stop.token());
  state->settled = std::move(settled);
  state->merging = std::make_unique<Merging>(*state->upstream);
  state->integration = std::make_unique<Integration>(*state->upstream, *state->merging, stage, state->settled);
  state->layers = std::make_unique<StageLayers>(stage, *state->integration);
  state->engine = std::make_unique<Engine>(
      Engine::Parts{.project = state->project,
                    .upstream = *state->upstream,
                    .layers = *state->layers,
                    .journal = *state->journal,
                    .events = site.events(),
                    .random = random,
                    .clock = clock,
                    .cancel = state->stop.token(),
                    .policy = state->options.policy,
                    .progress = [state = state.get()](const Progress& now) { state->has_progress(now); },
                    .merging = *state->merging});
  PLAYFS_CHECK(state->engine->recover());
  PLAYFS_TRY(auto last, state->journal->last());
  {
    MutexLock lock(state->mutex);
    if (last) state->last = result_of(*last);
  }
  std::unique_ptr<Publisher> publisher(new Publisher(state));
  publisher->visit();
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
  state_->refuse_jobs(Error{ErrorCode::interrupted, "playfs is ending", {}, {}, 0, {}});
  std::vector<Callback<Cancelled>> asked;
  {
    MutexLock lock(state_->mutex);
    asked.swap(state_->cancelling);
  }
  for (auto& done : asked) done(fail(ErrorCode::interrupted, "playfs is ending"));
  state_->answer_all([](const State::Waiter& waiter) { return !waiter.is_journalled; },
                     fail(ErrorCode::interrupted, "the commit was not begun"));
  CommitResult pending;
  pending.outcome = Outcome::pending;
  state_->answer_all([](const State::Waiter&) { return true; }, pending);
}

void Publisher::commit(CommitRequest request, CancelToken cancel, Callback<CommitResult> done) {
  std::string tx = state_->random.hex(kTxDigits);
  std::uint64_t id = 0;
  {
    MutexLock lock(state_->mutex);
    id = state_->next_waiter++;
    State::Waiter waiter;
    waiter.tx = tx;
    waiter.done = std::move(done);
    waiter.wait = request.wait;
    state_->waiters.emplace(id, std::move(waiter));
  }
  auto registration = cancel.on_cancel([weak = std::weak_ptr(state_), id, tx] {
    if (auto state = weak.lock()) state->answer(id, state->pending_result(tx));
  });
  {
    MutexLock lock(state_->mutex);
    auto found = state_->waiters.find(id);
    if (found != state_->waiters.end()) found->second.on_cancel = std::move(registration);
  }
  state_->executor.post([state = state_, id, request = std::move(request), tx] { state->enqueue(id, request, tx); });
}

void Publisher::update(RevisionTreePtr head, CancelToken cancel, Callback<Integrated> done) {
  state_->add_job<Integrated>(std::move(cancel), std::move(done), [state = state_.get(), head = std::move(head)] {
    auto updated = state->integration->update(head);
    // Whatever the tree stood on, it stands on head's line now, or is about to publish a merge with it.
    if (updated) {
      if (Status noted = state->journal->record_no_branch(); !noted) return Result<Integrated>(fail(noted.error()));
    }
    return updated;
  });
}

void Publisher::merge(RevisionTreePtr revision, CancelToken cancel, Callback<Integrated> done) {
  state_->add_job<Integrated>(
      std::move(cancel), std::move(done),
      [state = state_.get(), revision = std::move(revision)] { return state->integration->merge(revision); });
}

void Publisher::plan(CancelToken cancel, Callback<PlannedCommit> done) {
  state_->add_job<PlannedCommit>(std::move(cancel), std::move(done), [state = state_.get()]() -> Result<PlannedCommit> {
    PlannedCommit planned;
    PLAYFS_TRY(auto pending, state->stage.pending());
    if (pending) return fail(ErrorCode::busy, "a publication is under way", "playfs status");
    // Fixed for a moment: what is planned is one state of the tree.
    std::string tx = state->random.hex(kTxDigits);
    PLAYFS_TRY(auto frozen, state->stage.freeze(tx));
    if (!frozen) return planned;
    auto plan = state->engine->plan_only(*frozen, state->options.agent, std::string());
    PLAYFS_CHECK(state->stage.thaw(tx));
    if (!plan) return fail(plan.error());
    planned.files_changed = static_cast<std::uint32_t>(frozen->files.size() + frozen->deletions.size());
    planned.revision_size = plan->revision_size;
    std::map<std::string, PlannedCommit::Path> paths;
    for (const auto& file : frozen->files) paths[file.path].size = file.size;
    for (const auto& path : frozen->deletions) paths[path].deleted = true;
    for (const auto& upload : plan->uploads) {
      ++paths[upload.path].chunks;
      paths[upload.path].sent += upload.content.size();
    }
    for (auto& [path, costs] : paths) {
      costs.path = path;
      planned.paths.push_back(std::move(costs));
    }
    MutexLock lock(state->mutex);
    state->planned = planned;
    return planned;
  });
}

void Publisher::cancel(Callback<Cancelled> done) {
  bool is_asked = false, interrupts = false;
  CancelSource round;
  {
    MutexLock lock(state_->mutex);
    if (!state_->stopping) {
      state_->cancelling.push_back(std::move(done));
      state_->changed.notify_all();
      is_asked = true;
      // What is being posted is not interrupted: its answer is wanted.
      interrupts = state_->progress.phase < Phase::posting;
      round = state_->round;
    }
  }
  if (!is_asked) return done(fail(ErrorCode::interrupted, "playfs is ending"));
  if (interrupts) round.cancel();
}

void Publisher::visit() {
  MutexLock lock(state_->mutex);
  state_->wants_visit = state_->options.visits;
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
  std::vector<QueuedCommit> queue;
  for (auto& each : waiting) queue.push_back({std::move(each.tx), std::move(each.agent), std::move(each.message)});
  return queue;
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
  MutexLock lock(state_->mutex);
  return state_->left_out;
}

std::optional<RevisionId> Publisher::branch() const {
  auto branch = state_->journal->branch();
  auto base = state_->stage.base();
  if (!branch || branch->empty() || !base || base->revision.id != *branch) return std::nullopt;
  // Somebody may have taken it in since: seen as far as that needs no request.
  if (auto head = state_->site.try_head(state_->project)) {
    const RevisionId& latest = head->project.latest_revision;
    auto tree = latest.empty() ? nullptr : state_->site.try_revision(latest);
    if (latest == *branch) return std::nullopt;
    if (tree && std::count(tree->revision.parents.begin(), tree->revision.parents.end(), *branch)) return std::nullopt;
  }
  return *branch;
}

}  // namespace playfs::publish
