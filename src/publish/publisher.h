// Publishing a work tree's staged changes under the revision protocol, in the background, resumable.
//
// One Publisher belongs to one Stage. A publication is a sequence of steps, each written to the journal (a SQLite
// database beside the stage) and synced before anything is sent, so that a crash at any instant is resumed with the
// same idempotency keys and the same bytes. It runs on a thread of the publisher's own, which is allowed to wait.
// Thread-safe. Callbacks run on any thread, with no lock held, and must not block.
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
  bool wait = true;         ///< false: answer `pending` as soon as what is published is fixed and journalled
  bool allow_merge = true;  ///< false: rather a branch than an automatic merge
  bool resolved = false;    ///< what was left in conflict is right as it stands
  bool dry_run = false;     ///< for whoever passes this on to plan() instead
  std::string again = {};   ///< for whoever passes this on to outcome_of() instead: a commit's id
};

struct PublisherOptions {
  std::size_t parallel_uploads = 8;
  /// How long a publication rests after an error that time may heal: doubled each time, up to the longest.
  std::chrono::milliseconds first_rest{1'000};
  std::chrono::milliseconds longest_rest{60'000};
  std::chrono::milliseconds late_arrival{120'000};  ///< see Engine::Parts
  JournalProbe probe;
  MergePolicy policy;
  /// False: a commit is posted on its base with exactly what was frozen, also where head has moved, and is merged with
  /// head afterwards. Its revision then is what the caller has, which makes it the base of what the caller does next.
  bool merges_first = true;
  bool visits = true;  ///< looks after what was left behind: when it opens, and when visit() says so
  std::string agent;   ///< who speaks where something has to be announced that was not committed here
};

class Publisher {
 public:
  /// `directory` holds the journal. Resumes what an earlier process left behind. All that is passed by reference
  /// must outlive the publisher.
  static Result<std::unique_ptr<Publisher>> open(const std::string& directory, ProjectId project, content::Site& site,
                                                 stage::Stage& stage, Executor& executor, const Clock& clock,
                                                 Random& random, Settled settled, PublisherOptions options = {});
  /// Stops where it is; the next open() goes on. Whoever still waits is answered `pending`.
  ~Publisher();

  /// Freezes what is staged and publishes it. With `wait`, `done` is called at the end; cancelling answers `pending`
  /// and the publication goes on. A second commit while one is under way queues behind it, and takes what is staged
  /// when its turn comes.
  void commit(CommitRequest request, CancelToken cancel, Callback<CommitResult> done);
  /// What became of a commit whose caller was answered `pending`. Likewise waits for its end, with `wait`, and begins
  /// nothing. Fails with `not_found` where no commit of that id is known: the last that ended and some before it are.
  void outcome_of(const std::string& tx, bool wait, CancelToken cancel, Callback<CommitResult> done);

  /// Moves the base of the work tree to `head`, merging what is staged; or takes in another revision. Waits for a
  /// publication that is under way; fails with `busy` where that has to rest.
  void update(RevisionTreePtr head, CancelToken cancel, Callback<Integrated> done);
  void merge(RevisionTreePtr revision, CancelToken cancel, Callback<Integrated> done);
  /// To be called when head may not hold the base any more: where the service went back to an older state and has lost
  /// the base, what is left of its line becomes the base, and what the tree had stays, staged. Answers whether it was
  /// so; fails with `busy` while that cannot be told from reads that lag (absences.h), and has to be called again then.
  void keep_lost_base(RevisionTreePtr head, CancelToken cancel, Callback<bool> done);
  /// A revision was read, past every cache: it is not lost.
  void saw(const RevisionId& revision);
  /// Waits as update() does: what commit() would send now.
  void plan(CancelToken cancel, Callback<PlannedCommit> done);

  /// Gives back what waits or is under way, as far as nothing of it can have become a revision yet: it is staged again.
  /// Whoever waits for one of those commits is answered `cancelled`. Answered when that is on disk.
  void cancel(Callback<Cancelled> done);

  /// Looks after what was published here and by others, in the background, once nothing else is under way: see
  /// Engine::visit. To be called when head has moved, and now and then.
  void visit();

  [[nodiscard]] Progress progress() const;
  /// The commits that have not ended, the one that is under way first.
  [[nodiscard]] Result<std::vector<QueuedCommit>> queue() const;
  /// The last dry run's.
  [[nodiscard]] std::optional<PlannedCommit> last_plan() const;
  /// The last commit that ended, here or in an earlier process, for reading `commit` back.
  [[nodiscard]] std::optional<Result<CommitResult>> last() const;
  /// Siblings that were not merged into head when it was looked after last.
  [[nodiscard]] std::vector<RevisionId> left_out() const;
  /// The base that was lost, until what it held is published again or given up.
  [[nodiscard]] std::optional<LostBase> lost_base() const;
  /// To be called when what is staged was dropped.
  void forget_lost_base();
  /// The branch that the work tree stands on: its base was published here, and head, as far as is known here, is
  /// neither that revision nor made on it. A work tree that stands on a branch must not follow head by itself.
  [[nodiscard]] std::optional<RevisionId> branch() const;

 private:
  struct State;
  explicit Publisher(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace playfs::publish
