// The projects that this mount uses: their heads are followed, and moves are reported to whoever shows them.
//
// The kernel answers from its caches, so we do not see a project being used. The most recently looked-up projects
// therefore count as in use while the kernel refers to them. A program may also have a directory of any other
// referenced project open, or be in it: those are polled in turn, a few at a time. Thread-safe.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "model/ids.h"
#include "model/tree.h"
#include "vfs/node.h"

namespace playfs::vfs {

/// Shows a project's head to the kernel. Outlives its node table entry only during a call.
class HeadView {
 public:
  virtual ~HeadView() = default;
  /// Another revision is shown from now on: invalidate the kernel's caches.
  virtual void head_moved() = 0;
  /// The service has reported head, moved or not: update what is shown if it differs.
  virtual void head_seen() {}
};

class ProjectsInUse {
 public:
  /// How many projects stay in use without being touched; each costs a request per `refresh`.
  static constexpr std::size_t kKept = 16;

  explicit ProjectsInUse(Mount& mount) : mount_(mount) {}

  /// Something below `view` was looked up.
  void touch(const ProjectId& project, const std::shared_ptr<HeadView>& view) PLAYFS_EXCLUDES(mutex_);
  /// What the kernel knows about the project's head is out of date.
  void head_moved(const ProjectId& project) PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] std::vector<ProjectId> list() const PLAYFS_EXCLUDES(mutex_);

 private:
  void head_changed(const ProjectId& project, const RevisionTreePtr& head) PLAYFS_EXCLUDES(mutex_);
  void head_seen(const ProjectId& project) PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] std::shared_ptr<HeadView> view_of(const ProjectId& project) PLAYFS_EXCLUDES(mutex_);
  void keep() PLAYFS_EXCLUDES(mutex_);
  /// The next projects to poll, among those that the kernel refers to and that are not in use.
  [[nodiscard]] std::vector<ProjectId> next_others() PLAYFS_REQUIRES(mutex_);
  void bring_up(const ProjectId& project);

  Mount& mount_;
  mutable Mutex mutex_;
  bool begun_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::list<ProjectId> recent_ PLAYFS_GUARDED_BY(mutex_);  ///< most recently used first
  std::map<ProjectId, std::weak_ptr<HeadView>> views_ PLAYFS_GUARDED_BY(mutex_);
  ProjectId asked_last_ PLAYFS_GUARDED_BY(mutex_);  ///< the last of the others to be polled
};

}  // namespace playfs::vfs
