// One project's work tree in a process that mounts nothing: the front end of commands in a clone, as FileSystem is the
// kernel's. Stage, publisher and journal are the same, and so is what a commit, an update or a discard does to them.
//
// It stays on its base until an update, and sends no request that none of its operations needs. An unfinished
// publication goes on as soon as it is open. Thread-safe once open; replies as FileSystem's.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/executor.h"
#include "base/random.h"
#include "content/site.h"
#include "stage/stage.h"
#include "vfs/file_system.h"
#include "vfs/metrics.h"
#include "vfs/mount_file_system.h"

namespace playfs::vfs {

class WorkTree;
struct ProjectStatus;  // vfs/control/control_text.h

class LoneWorkTree {
 public:
  /// REQUIRES: options.project. All references must outlive it; the executor must still run when it is destroyed.
  LoneWorkTree(content::Site& site, const Clock& clock, Executor& executor, Random& random, FileSystemOptions options);
  /// Answers waiting operations with `interrupted`; a publication under way stops, journalled.
  ~LoneWorkTree();
  LoneWorkTree(const LoneWorkTree&) = delete;
  LoneWorkTree& operator=(const LoneWorkTree&) = delete;

  /// Opens the stage. Fetches the base's manifest if it is not in the cache; a new stage is based on options.revision,
  /// or on head.
  void open(Reply<void> done);
  /// REQUIRES: open() has succeeded.
  [[nodiscard]] stage::Stage& stage();
  /// stage::identity_of_stage of it.
  [[nodiscard]] std::uint64_t stage_identity() const;

  // All of these REQUIRE that open() has succeeded.
  void commit(CommitRequest request, CancelToken cancel, Reply<CommitResult> done);
  /// REQUIRES: request.path.
  void discard(DiscardRequest request, Reply<DiscardResult> done);
  void checkpoint(CheckpointRequest request, Reply<CheckpointResult> done);
  void restore(RestoreRequest request, Reply<RestoreResult> done);
  /// Updates to head, or merges `revision` if one is given.
  void update(const RevisionId& revision, Reply<UpdateResult> done);
  void cancel(Reply<Cancelled> done);
  void work_status(Reply<WorkStatus> done);
  /// Uses what is known of the project, and sends a request only if nothing is known.
  void status(Reply<ProjectStatus> done);
  /// Fetches what status() needs to know all branches of the project, and its head.
  void look_for_branches(Reply<void> done);
  /// What a dry run would send, as the mount's `commit` shows it; "" if it is not known any more.
  [[nodiscard]] std::string document(const CommitResult& result) const;

 private:
  [[nodiscard]] static Caller user(CancelToken cancel = {});
  template <class T, class F>
  void run(Counted counted, F attempt, Reply<T> done, CancelToken cancel = {});

  std::unique_ptr<Mount> mount_;
  std::shared_ptr<WorkTree> tree_;
};

}  // namespace playfs::vfs
