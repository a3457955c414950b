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
#include <vector>

#include "base/callback.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/random.h"
#include "content/site.h"
#include "publish/journal.h"
#include "publish/outcome.h"
#include "stage/stage.h"

namespace playfs::publish {

struct CommitRequest {
  std::string agent;
  std::string message;
  bool wait = true;         ///< false: answer `pending` as soon as what is published is fixed and journalled
  bool allow_merge = true;  ///< false: rather a branch than an automatic merge
};

struct PublisherOptions {
  std::size_t parallel_uploads = 8;
  /// How long a publication rests after an error that time may heal: doubled each time, up to the longest.
  std::chrono::milliseconds first_rest{1'000};
  std::chrono::milliseconds longest_rest{60'000};
  JournalProbe probe;
};

class Publisher {
 public:
  /// Called after a publication settled, so that the mount can invalidate what changed.
  using Settled = std::function<void(const std::vector<stage::Invalidation>&)>;

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

  [[nodiscard]] Progress progress() const;
  /// The last commit that ended, here or in an earlier process, for reading `commit` back.
  [[nodiscard]] std::optional<Result<CommitResult>> last() const;
  /// The branch that the work tree stands on: its base was published here, and head, as far as is known here, is
  /// neither that revision nor made on it. A work tree that stands on a branch must not follow head by itself.
  [[nodiscard]] std::optional<RevisionId> branch() const;

 private:
  struct State;
  explicit Publisher(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace playfs::publish
