// One publication from step to step: what a publisher's thread does. Blocking; knows no threads and no queue.
//
// run() may be called again after any error that time may heal, in this process or the next: each step looks at
// what the journal, the stage and the service say before it does anything. See README.md for the steps.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/random.h"
#include "content/site.h"
#include "publish/bodies.h"
#include "publish/journal.h"
#include "publish/outcome.h"
#include "stage/stage.h"

namespace playfs::publish {

/// What an ended publication came to.
Result<CommitResult> result_of(const Publication& publication);

class Engine {
 public:
  struct Parts {
    ProjectId project;
    content::Site& site;
    stage::Stage& stage;
    Journal& journal;
    Random& random;
    CancelToken cancel;  ///< of everything that waits
    std::size_t parallel_uploads = 8;
    std::function<void(Phase, const CommitResult&)> progress;
    std::function<void(const std::vector<stage::Invalidation>&)> settled;
  };
  explicit Engine(Parts parts) : parts_(std::move(parts)) {}

  /// Brings stage and journal together after a start: a pending layer that no publication knows is staged again.
  Status recover();

  /// Goes on until the publication ended. An error is one that time may heal.
  Status run(Publication& publication);

 private:
  /// What one publication has in memory. All of it can be had again.
  struct Work {
    std::string tx;
    stage::Frozen frozen;
    std::vector<PutFile> puts;  ///< with their content
    ChunkTexts fetched;         ///< chunks that others uploaded, compared by us
    Stored stored_by_others;
    bool is_first_post = false;  ///< the body was journalled by this very run, so it was never sent
    RevisionTreePtr ours;
  };

  Status step(Publication& publication);
  Status freeze(Publication& publication);
  Status prepare(Publication& publication);
  Status post(Publication& publication);
  Status move_head(Publication& publication);
  Status settle(Publication& publication);
  Status thaw(Publication& publication);

  Status load(const Publication& publication);
  Status find_stored_by_others();
  Result<PlanInput> plan_input(const Publication& publication, const std::vector<Upload>& uploads) const;
  Status journal_uploads(Publication& publication, const Plan& plan, std::size_t already);
  Status send(Publication& publication, const std::vector<Upload>& uploads);
  Status journal_body(Publication& publication, const Plan& plan);
  Result<std::optional<Record>> find_posted(const Publication& publication);
  Status adopt(Publication& publication, Record record);
  Status bring_ours(const Publication& publication);
  Status patch_head(Publication& publication);

  void tell(const Publication& publication, Phase phase, std::uint32_t chunks_done = 0) const;
  void log_event(const char* kind, const Publication& publication, JsonObject more = {}) const;
  [[nodiscard]] Result<bool> is_pending(const Publication& publication) const;

  Parts parts_;
  Work work_;
};

}  // namespace playfs::publish
