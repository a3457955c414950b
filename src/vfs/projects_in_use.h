// Which projects the mount looks at: whose heads are followed, and who is told when one moves.
//
// The kernel answers from its caches and so hides from us that a project is being used. The ones that were looked
// into most recently are therefore kept in use for as long as the kernel refers to them. Thread-safe.
#pragma once

#include <list>
#include <map>
#include <memory>

#include "base/mutex.h"
#include "model/ids.h"
#include "model/tree.h"
#include "vfs/node.h"

namespace playfs::vfs {

class ProjectsInUse {
 public:
  /// How many projects are kept in use without being touched: each costs a request every `refresh`.
  static constexpr std::size_t kKept = 16;

  explicit ProjectsInUse(Mount& mount) : mount_(mount) {}

  /// Something in the project was looked up; `directory` holds its `head`, or is the mount's root.
  void touch(const ProjectId& project, const NodePtr& directory) PLAYFS_EXCLUDES(mutex_);
  /// The kernel's `head` of the project is out of date.
  void head_moved(const ProjectId& project) PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] std::vector<ProjectId> list() const PLAYFS_EXCLUDES(mutex_);

 private:
  void head_changed(const ProjectId& project, const RevisionTreePtr& head) PLAYFS_EXCLUDES(mutex_);
  void keep() PLAYFS_EXCLUDES(mutex_);

  Mount& mount_;
  mutable Mutex mutex_;
  bool begun_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::list<ProjectId> recent_ PLAYFS_GUARDED_BY(mutex_);  ///< most recently used first
  std::map<ProjectId, std::weak_ptr<Node>> directories_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::vfs
