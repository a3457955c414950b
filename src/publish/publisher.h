// Publishes a work tree's staged changes by the revision protocol, in the background and across restarts.
//
// One Publisher belongs to one Stage. A publication is a sequence of steps. Each is written to the journal (a SQLite
// database beside the stage) and synced before anything is sent, so that after a crash at any instant it resumes with
// the same idempotency keys and the same bytes. It runs on the publisher's own thread, which may block. Thread-safe.
// Callbacks run on any thread, with no lock held, and must not block.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/callback.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/random.h"
#include "content/site.h"
#include "publish/convergence.h"
#include "publish/dry_run.h"
#include "publish/integration.h"
#include "publish/journal.h"
#include "publish/outcome.h"
#include "publish/stage_layers.h"
#include "stage/stage.h"

namespace playfs::publish {

struct CommitRequest {
  std::string agent;
  std::string message;
  bool wait = true;         ///< false: answer `pending` once the content is frozen and journalled
  bool allow_merge = true;  ///< false: prefer a branch to an automatic merge
  bool resolved = false;    ///< declares all conflicted paths correct as they are
  bool dry_run = false;     ///< for callers that pass the request to plan() instead
  std::string again = {};   ///< for callers that pass it to outcome_of() instead: a commit's id
  /// Called with the commit's id before it is journalled. May block.
  std::function<void(const std::string& tx)> queueing = {};
  std::function<void()> journalled = {};  ///< called once the commit survives the end of the process; may block
};

struct PublisherOptions {
  std::size_t parallel_uploads = 8;
  /// The backoff after an error that time may cure: doubled each time, up to the longest.
  std::chrono::milliseconds first_backoff{1'000};
  std::chrono::milliseconds longest_backoff{60'000};
  std::chrono::milliseconds late_arrival{120'000};  ///< see PublicationEngine::Parts
  JournalProbe probe;
  MergePolicy policy;
  /// False: a commit is posted on its base with exactly what was frozen, even if head has moved, and merged with head
  /// afterwards. Its revision is then exactly what the caller has, so it can be the base of the caller's next change.
  bool merges_first = true;
  bool reconciles = true;  ///< reconciles when it opens and on reconcile()
  std::string agent;       ///< author of announcements about revisions that were not committed here
  /// Asked about the commits that an earlier process left, before any of them goes on; an error is that of open().
  std::function<Status(const std::vector<QueuedCommit>&)> may_go_on = {};
  /// Called when staged changes have been frozen, before any of them is sent.
  std::function<void()> frozen = {};
};

class Publisher {
 public:
  /// `directory` holds the journal. Resumes what an earlier process left behind, if it may.
  /// References must outlive the publisher.
  static Result<std::unique_ptr<Publisher>> open(const std::string& directory, ProjectId project, content::Site& site,
                                                 stage::Stage& stage, Executor& executor, const Clock& clock,
                                                 Random& random, Settled settled, PublisherOptions options = {});
  /// Stops in the middle; the next open() continues. Remaining waiters are answered `pending`.
  ~Publisher();

  /// Freezes what is staged and publishes it. If `wait`, calls `done` at the end; cancelling answers `pending` while
  /// the publication continues. A commit behind one in progress is queued, and takes what is staged when its turn
  /// comes.
  void commit(CommitRequest request, CancelToken cancel, Callback<CommitResult> done);
  /// The outcome of a commit whose caller was answered `pending`. If `wait`, waits for its end like commit(); starts
  /// nothing. Fails with `not_found` if no commit of that id is known; the last few that ended are known.
  void outcome_of(const std::string& tx, bool wait, CancelToken cancel, Callback<CommitResult> done);

  /// update() moves the work tree's base to `head`, merging what is staged; merge() merges another revision. Both wait
  /// for a publication in progress, and fail with `busy` while that backs off.
  void update(RevisionTreePtr head, CancelToken cancel, Callback<Integrated> done);
  void merge(RevisionTreePtr revision, CancelToken cancel, Callback<Integrated> done);
  /// Call this when head may not hold the base any more. If the service went back to an older state and lost the base,
  /// the newest survivor of its line becomes the base, and the tree's content stays, staged. Returns whether that was
  /// so. Fails with `busy` while reads that merely lag cannot be ruled out (absences.h); call it again then.
  void keep_lost_base(RevisionTreePtr head, CancelToken cancel, Callback<bool> done);
  /// Reports that a revision was read, bypassing all caches: it is not lost.
  void saw(const RevisionId& revision);
  /// Call this before taking the head that `project` names for the newest one. If a newer record has shown another
  /// head, fails with `busy` until every lookup for as long as reads may lag returned the older one. Each call counts
  /// as one.
  [[nodiscard]] Status check_head(const Project& project);
  /// What commit() would send now. Waits like update().
  void plan(CancelToken cancel, Callback<PlannedCommit> done);

  /// Returns queued commits and the one in progress to the stage, unless a revision of it may exist already. Waiters of
  /// these commits are answered `cancelled`. Calls `done` once the result is on disk.
  void cancel(Callback<Cancelled> done);

  /// Reconciles in the background once nothing else is in progress: see PublicationEngine::reconcile. Call this when
  /// head has moved, and now and then.
  void reconcile();

  [[nodiscard]] Progress progress() const;
  /// The commits that have not ended; the one in progress first.
  [[nodiscard]] Result<std::vector<QueuedCommit>> queue() const;
  /// The result of the last dry run.
  [[nodiscard]] std::optional<PlannedCommit> last_plan() const;
  /// The last commit that ended, in this process or an earlier one, for reading `commit` back.
  [[nodiscard]] std::optional<Result<CommitResult>> last() const;
  /// Revisions beside head that were not merged, the newest 64, also from earlier runs. Head may hold some by now.
  [[nodiscard]] std::vector<RevisionId> left_out() const;
  /// The lost base, until what it held is published again or given up.
  [[nodiscard]] std::optional<LostBase> lost_base() const;
  /// Call this when what is staged was discarded.
  void forget_lost_base();
  /// The branch that the work tree is on, if any: its base was published from here, and head, as far as is known here,
  /// does not contain that revision. A work tree on a branch must not follow head by itself.
  [[nodiscard]] std::optional<RevisionId> branch() const;

 private:
  struct State;
  explicit Publisher(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace playfs::publish
