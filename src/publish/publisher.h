// Publishing a work tree's staged changes under the revision protocol, in the background, resumable.
//
// One Publisher belongs to one Stage. A publication is a sequence of steps, each written to the journal (a SQLite
// database beside the stage) and synced before anything is sent, so that a crash at any instant is resumed with the
// same idempotency keys and the same bytes. Thread-safe; callbacks run on the publisher's thread.
#pragma once

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
#include "stage/stage.h"

namespace playfs::publish {

enum class Outcome { published, merged, branched, pending, nothing };

struct CommitRequest {
  std::string agent;
  std::string message;
  bool wait = true;        ///< false: answer `pending` as soon as the publication has been journalled
  bool allow_merge = true;
};

struct CommitResult {
  Outcome outcome = Outcome::nothing;
  RevisionId revision;
  RevisionId merged_revision;      ///< the automatic merge that became head, where there was one
  std::uint32_t files_changed = 0;
  std::uint32_t writes_used = 0;   ///< POST and PATCH requests
  std::uint32_t chunks_done = 0;
  std::uint32_t chunks_total = 0;
  std::uint32_t retry_after_s = 0; ///< pending on a rate limit: when it goes on
  std::vector<std::string> conflicts;
};

enum class Phase { idle, freezing, planning, uploading, posting, verifying };
struct Progress {
  Phase phase = Phase::idle;
  CommitResult so_far;
  std::optional<Error> last_error;  ///< why it is waiting, if it is
  std::string tx;
};

class Publisher {
 public:
  /// Called after a publication settled, so that the mount can invalidate what changed.
  using Settled = std::function<void(const std::vector<stage::Invalidation>&)>;

  /// `directory` holds the journal. Resumes what an earlier process left behind.
  static Result<std::unique_ptr<Publisher>> open(const std::string& directory, ProjectId project, content::Site& site,
                                                 stage::Stage& stage, const Clock& clock, Random& random, Settled settled);
  ~Publisher();

  /// Freezes and publishes. With `wait`, `done` is called at the end; cancelling answers `pending`, the publication
  /// goes on. A second commit while one is under way queues behind it.
  void commit(CommitRequest request, CancelToken cancel, Callback<CommitResult> done);

  [[nodiscard]] Progress progress() const;
  /// The last publication that ended, for reading `commit` back.
  [[nodiscard]] std::optional<Result<CommitResult>> last() const;

 private:
  struct State;
  explicit Publisher(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace playfs::publish
