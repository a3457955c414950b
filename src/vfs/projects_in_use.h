// Which projects the mount looks at: whose heads are followed, and who is told when one moves.
//
// The kernel answers from its caches and so hides from us that a project is being used. The ones that were looked
// into most recently are therefore kept in use for as long as the kernel refers to them. Of all others that it refers
// to somebody may have a directory open, or be in it: they are asked about in turn, a few at a time. Thread-safe.
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

/// Something by which the kernel sees a project's head. Outlives its node's table entry only while it is being told.
class HeadView {
 public:
  virtual ~HeadView() = default;
  /// Shows another revision from now on: the kernel is to be told.
  virtual void head_moved() = 0;
  /// The service has said where head is, moved or not: what is shown is brought up where it differs.
  virtual void head_seen() {}
};

class ProjectsInUse {
 public:
  /// How many projects are kept in use without being touched: each costs a request every `refresh`.
  static constexpr std::size_t kKept = 16;

  explicit ProjectsInUse(Mount& mount) : mount_(mount) {}

  /// Something in the project was looked up, below `view`.
  void touch(const ProjectId& project, const std::shared_ptr<HeadView>& view) PLAYFS_EXCLUDES(mutex_);
  /// What the kernel knows of the project's head is out of date.
  void head_moved(const ProjectId& project) PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] std::vector<ProjectId> list() const PLAYFS_EXCLUDES(mutex_);

 private:
  void head_changed(const ProjectId& project, const RevisionTreePtr& head) PLAYFS_EXCLUDES(mutex_);
  void head_seen(const ProjectId& project) PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] std::shared_ptr<HeadView> view_of(const ProjectId& project) PLAYFS_EXCLUDES(mutex_);
  void keep() PLAYFS_EXCLUDES(mutex_);
  /// The next of those that the kernel refers to and that are not kept in use.
  [[nodiscard]] std::vector<ProjectId> next_others() PLAYFS_REQUIRES(mutex_);
  void bring_up(const ProjectId& project);

  Mount& mount_;
  mutable Mutex mutex_;
  bool begun_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::list<ProjectId> recent_ PLAYFS_GUARDED_BY(mutex_);  ///< most recently used first
  std::map<ProjectId, std::weak_ptr<HeadView>> views_ PLAYFS_GUARDED_BY(mutex_);
  ProjectId asked_last_ PLAYFS_GUARDED_BY(mutex_);  ///< of the others
};

}  // namespace playfs::vfs
