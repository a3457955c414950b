// The work trees that are open in this mount: one a project, opened at the first need, kept until the end.
// Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "vfs/attempt.h"
#include "vfs/once.h"
#include "vfs/work_tree.h"

namespace playfs::vfs {

class WorkTrees {
 public:
  explicit WorkTrees(Mount& mount) : mount_(mount) {}
  ~WorkTrees();

  /// nullptr: not open.
  [[nodiscard]] std::shared_ptr<WorkTree> find(const ProjectId& project) const PLAYFS_EXCLUDES(mutex_);
  /// Whether something of the project may be staged: its stage exists on disk.
  [[nodiscard]] bool exist(const ProjectId& project) const;
  /// Opens where needed, fetching the base first. Fails with `read_only` in a read-only mount, and with `busy` where
  /// another process has it open, and with `protocol` where its base is nowhere any more; which of these is an answer
  /// of the attempt, never of a fetch.
  [[nodiscard]] Attempt<std::shared_ptr<WorkTree>> here(const OperationPtr& op, const ProjectId& project);
  /// Tries to open a tree that is not, though nobody looks at it.
  void try_open(const ProjectId& project, Callback<void> done);
  void head_changed(const ProjectId& project, const RevisionTreePtr& head);
  /// The service has said where head is, moved or not.
  void head_seen(const ProjectId& project);
  /// Opens those whose publication an earlier mount left behind, soon, so that it goes on though nobody looks at them.
  /// Reads one small database for each project that was ever published from here. One whose base is neither here nor to
  /// be had goes on when somebody looks at it.
  void resume();

 private:
  struct Waiter {
    Once<void> done;
    CancelToken::Registration on_cancel;
  };
  class Opening;

  [[nodiscard]] std::string directory_of(const ProjectId& project) const;
  /// nullopt where the name does not tell.
  [[nodiscard]] std::optional<ProjectId> project_in(const std::string& directory) const;
  /// Why it could not be opened last, where trying again at once would come to the same.
  [[nodiscard]] std::optional<Error> refusal_of(const ProjectId& project) const PLAYFS_EXCLUDES(mutex_);
  void open_unfinished();
  void open(const ProjectId& project, const CancelToken& cancel, Callback<void> done) PLAYFS_EXCLUDES(mutex_);
  void opened(const ProjectId& project, Result<std::shared_ptr<WorkTree>> tree) PLAYFS_EXCLUDES(mutex_);

  Mount& mount_;
  mutable Mutex mutex_;
  std::map<ProjectId, std::shared_ptr<WorkTree>> trees_ PLAYFS_GUARDED_BY(mutex_);
  std::map<ProjectId, Error> refused_ PLAYFS_GUARDED_BY(mutex_);
  std::map<ProjectId, std::vector<Waiter>> opening_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::vfs
