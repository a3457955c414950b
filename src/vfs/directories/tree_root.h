// The root of a tree that can be replaced while programs are in it: the root of a single-tree mount, and `work/` while
// it is not writable.
//
// The tree is fetched or opened at first use: mounting sends no request. At the mount's root it also has `.playfs/`,
// which is not listed and always available, whatever happens to the tree. The kernel caches the names indefinitely, so
// trees are swapped as a whole: when head moves under a tree that nobody can write in, and when another process
// releases a work tree. Programs that have the directory open, or are in it, move along. Thread-safe.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "vfs/children.h"
#include "vfs/node.h"
#include "vfs/projects_in_use.h"

namespace playfs::vfs {

class TreeRoot final : public Node, public HeadView {
 public:
  /// Without a parent it is the mount's root.
  TreeRoot(Mount& mount, NodePtr parent, std::string name, ProjectId project, std::optional<RevisionId> revision)
      : Node(mount, std::move(parent), std::move(name)), project_(std::move(project)), revision_(std::move(revision)) {}

  Attempt<NodePtr> target(const OperationPtr& op) override;
  Attempt<std::shared_ptr<WorkTree>> work_tree(const OperationPtr& op) override;
  Attempt<AttributesReply> attributes(const OperationPtr& op) override;
  Attempt<LookupResult> lookup(const OperationPtr& op, const std::string& name) override;
  void head_moved() override { bring_up(); }
  void head_seen() override { bring_up(); }

 private:
  /// The shown tree, fetched or opened at first use.
  Attempt<NodePtr> tree(const OperationPtr& op) PLAYFS_EXCLUDES(mutex_);
  /// The shown tree; nullptr before first use.
  [[nodiscard]] NodePtr shown() const PLAYFS_EXCLUDES(mutex_);
  /// A read-only tree as a node; `refusal`: why it cannot be changed.
  [[nodiscard]] NodePtr made(const RevisionTreePtr& revision, const Error& refusal);
  /// The root of a writable work tree, which the kernel knows under this node's id.
  [[nodiscard]] NodePtr writable(const std::shared_ptr<WorkTree>& tree);
  /// Shows `tree` unless one is already shown; returns the shown one.
  [[nodiscard]] NodePtr begin(const NodePtr& tree, const std::optional<Error>& refusal) PLAYFS_EXCLUDES(mutex_);
  /// Switches to the newest tree known.
  void bring_up() PLAYFS_EXCLUDES(moving_, mutex_);
  /// Switches to what is available locally; false if the wanted revision is not. `come`: the revision, if it is a new
  /// one.
  [[nodiscard]] bool show_known(RevisionTreePtr& come) PLAYFS_EXCLUDES(moving_, mutex_);
  void replace(const NodePtr& tree) PLAYFS_EXCLUDES(mutex_);
  Attempt<AttributesReply> attributes_of_tree(const OperationPtr& op);
  /// Attributes of the mount's root while the tree is unavailable for the reason in `stop`: waits briefly, or not at
  /// all if that was recently in vain.
  Attempt<AttributesReply> attributes_without_tree(const OperationPtr& op, NoValue stop) PLAYFS_EXCLUDES(mutex_);
  /// Checks periodically whether the other process has released the work tree.
  void try_later();

  const ProjectId project_;
  const std::optional<RevisionId> revision_;  ///< show this one, whatever head is
  Children children_;
  Mutex moving_;  ///< makes the newer of two heads win; taken before mutex_
  mutable Mutex mutex_;
  NodePtr shown_ PLAYFS_GUARDED_BY(mutex_);
  std::optional<Error> refusal_ PLAYFS_GUARDED_BY(mutex_);  ///< nullopt: the tree is final (a work tree or a fixed
                                                            ///< revision)
  SteadyTime look_again_ PLAYFS_GUARDED_BY(mutex_);         ///< when the root's attributes may wait for the tree again
};

}  // namespace playfs::vfs
