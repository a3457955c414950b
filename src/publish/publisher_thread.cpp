// The publisher's thread: one publication after the other, backoff after errors that time may cure, and jobs and
// reconciles in between.
#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "publish/backoff.h"
#include "publish/lost_base.h"
#include "publish/publisher_state.h"

namespace playfs::publish {

namespace {
Error not_on_disk(const Publication& publication, const Error& disk) {
  return disk.while_doing("revision " + escape_for_terminal(publication.revision.text()) +
                          " is published, but is not safe on this disk");
}

Error is_behind_it(const Error& error) {
  return error.while_doing("the commit stays queued and continues at the next mount");
}

/// How long the service asks to wait, which is not how long playfs waits before it asks again.
std::chrono::seconds asked_by(const Error& error) {
  constexpr std::chrono::hours longest_believed{24};
  return std::min<std::chrono::seconds>(error.retry_after.value_or(std::chrono::seconds(0)), longest_believed);
}
}  // namespace

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
    else back_off(*error, ++streak);
  }
}

/// Answers requests to cancel, before anything else is done. False if there are none.
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
  PLAYFS_TRY(bool may_be_given_back, engine->may_be_given_back(front));
  cancelled.too_late = !may_be_given_back;
  // Only the commits answered below: one that is queued meanwhile is not cancelled, and its waiters keep waiting.
  std::vector<std::int64_t> behind;
  for (const auto& each : waiting)
    if (each.number != front.number) behind.push_back(each.number);
  cancelled.commits = static_cast<std::uint32_t>(behind.size());
  PLAYFS_CHECK(cancelled.too_late ? journal->drop(std::move(behind))
                                  : journal->record_cancelling(front, std::move(behind)));
  CommitResult result;
  result.outcome = Outcome::cancelled;
  for (const auto& each : waiting) {
    if (each.number == front.number) continue;
    result.tx = each.tx;
    waiters.answer_all(each.tx, result);
  }
  if (cancelled.too_late) return cancelled;
  ++cancelled.commits;
  // This sends no request. If it fails, the thread repeats it when it gets to that publication.
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
  if (Status ran = engine->run(**front, cancel); !ran) {
    const Status disk = stage.check_disk();
    if (disk || (*front)->step != Step::settling) return ran.error();
    // It continues when the tree is opened again, as do those behind it; nobody can wait for that.
    const Error error = not_on_disk(**front, disk.error());
    waiters.refuse_journalled([&](const std::string& tx) { return tx == (*front)->tx ? error : is_behind_it(error); });
    return error;
  }
  has_ended(**front);
  // This publication may have been the one to find that the service went back.
  keep_what_lies_elsewhere();
  return std::nullopt;
}

bool Publisher::State::keep_what_lies_elsewhere() {
  Status kept = publish::keep_what_lies_elsewhere(*upstream, *absences, stage, stage.base());
  if (kept) return true;
  if (is_transient(kept.error().code)) {
    reconcile_later(kept.error());
  } else {
    site.events().error("projects/" + project.text(),
                        kept.error().while_doing("keep the content that the service lost"));
  }
  return false;
}

/// Repeats a failed reconcile: head may not move for days, and what was to be announced or kept cannot wait for that.
void Publisher::State::reconcile_later(const Error& error) {
  auto length = backoff_after(error, ++failed_reconciles, options.first_backoff, options.longest_backoff);
  MutexLock lock(mutex);
  executor.post_after(length, [weak = weak_from_this(), number = reconciles] {
    auto state = weak.lock();
    if (!state) return;
    MutexLock lock(state->mutex);
    if (state->reconciles != number) return;
    state->wants_reconcile = state->options.reconciles;
    state->changed.notify_all();
  });
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

void Publisher::State::back_off(const Error& error, int streak) {
  auto length = backoff_after(error, streak, options.first_backoff, options.longest_backoff);
  std::uint64_t alarm = 0;
  std::string tx;
  {
    MutexLock lock(mutex);
    if (stopping) return;
    alarm = ++backoffs;
    backoff_is_over = false;
    progress.last_error = error;
    goes_on = clock.steady() + length;
    goes_on_later = true;
    tx = progress.tx;
    if (error.code == ErrorCode::rate_limited && progress.phase == Phase::uploading)
      pace.is_refused(clock.steady(), std::max(goes_on, clock.steady() + asked_by(error)));
  }
  refuse_jobs(
      Error{ErrorCode::busy, "a publication is waiting: " + error.message, "wait for it to finish: playfs status"});
  // It may take long until it is frozen, and callers that do not wait have it in the journal.
  waiters.answer_hasty(tx, pending_result(tx));
  if (streak == 1) {
    site.events().error("commit", error);
    site.events().event("commit_waiting",
                        {{"tx", tx}, {"error", error.message}, {"goes_on_in_ms", std::int64_t{length.count()}}});
  }
  executor.post_after(length, [weak = weak_from_this(), alarm] {
    auto state = weak.lock();
    if (!state) return;
    MutexLock lock(state->mutex);
    if (state->backoffs == alarm) state->backoff_is_over = true;
    state->changed.notify_all();
  });
  MutexLock lock(mutex);
  while (!stopping && !backoff_is_over && cancelling.empty()) changed.wait(mutex);
  goes_on_later = false;
  progress.last_error.reset();
}

void Publisher::State::wait_for_work() {
  CancelToken cancel;
  {
    MutexLock lock(mutex);
    progress = {};
    while (!stopping && !has_work && !wants_reconcile && jobs.empty() && cancelling.empty()) changed.wait(mutex);
    if (stopping || has_work || !jobs.empty() || !cancelling.empty() || !std::exchange(wants_reconcile, false)) return;
    is_reconciling = true;
    ++reconciles;
    round = CancelSource();
    cancel = round.token();
  }
  upstream->until(cancel);
  auto converged = engine->reconcile(options.agent);
  if (converged && keep_what_lies_elsewhere()) failed_reconciles = 0;
  {
    MutexLock lock(mutex);
    is_reconciling = false;
    if (cancel.cancelled()) wants_reconcile = true;
  }
  if (converged || cancel.cancelled()) return;
  if (is_transient(converged.error().code)) return reconcile_later(converged.error());
  site.events().error("projects/" + project.text(), converged.error().while_doing("reconcile head"));
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
    progress.reading = now.reading;
    tx = progress.tx;
  }
  // After freezing, the content is fixed; callers that do not wait need no more.
  if (now.phase > Phase::freezing) waiters.answer_hasty(tx, now.so_far);
}

void Publisher::State::has_ended(const Publication& publication) {
  auto result = result_of(publication);
  {
    MutexLock lock(mutex);
    last = result;
    progress = {};
  }
  waiters.answer_all(publication.tx, result);
}

}  // namespace playfs::publish
