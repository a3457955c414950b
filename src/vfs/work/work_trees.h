// The work trees open in this mount: one per project, opened on first use and kept until the end. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "vfs/attempt.h"
#include "vfs/once.h"
#include "vfs/work/work_tree.h"

namespace playfs::vfs {

/// Whether `work/` shows head, read-only, in place of a tree that cannot be opened for this reason: the mount is
/// read-only, another process has the tree open, or a newer version of playfs wrote it. For other reasons a lookup
/// fails.
[[nodiscard]] bool shows_head_instead(const Error& refusal);

class WorkTrees {
 public:
  explicit WorkTrees(Mount& mount) : mount_(mount) {}
  ~WorkTrees();

  /// nullptr: not open.
  [[nodiscard]] std::shared_ptr<WorkTree> find(const ProjectId& project) const PLAYFS_EXCLUDES(mutex_);
  /// Whether the project may have staged changes: its stage exists on disk.
  [[nodiscard]] bool exist(const ProjectId& project) const;
  /// Opens the tree if necessary, fetching its base first. Fails with `read_only` in a read-only mount, `busy` if
  /// another process has it open, `not_supported` if a newer version of playfs wrote it, and `protocol` if its base is
  /// gone everywhere. These errors come from the attempt, never from a fetch.
  [[nodiscard]] Attempt<std::shared_ptr<WorkTree>> here(const OperationPtr& op, const ProjectId& project);
  /// Tries to open a tree that no operation has asked for.
  void try_open(const ProjectId& project, Callback<void> done);
  void head_changed(const ProjectId& project, const RevisionTreePtr& head);
  /// The service has reported head, moved or not.
  void head_seen(const ProjectId& project);
  /// Soon opens the trees whose publication an earlier mount left behind, so that it resumes without anyone entering
  /// them. Reads one small database per project ever published from here. A tree whose base cannot be fetched now
  /// resumes when it is next used.
  void resume();

 private:
  struct Waiter {
    Once<void> done;
    CancelToken::Registration on_cancel;
  };
  class Opening;

  [[nodiscard]] std::string directory_of(const ProjectId& project) const;
  /// nullopt if the name does not reveal it.
  [[nodiscard]] std::optional<ProjectId> project_in(const std::string& directory) const;
  /// Why opening failed last time, if an immediate retry would yield the same result.
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
