// The root of a tree that may become another one while somebody is in it: what a mount of one tree shows, and `work/`
// where nobody can write in it.
//
// Stands for the tree, which is fetched or opened at its first use: mounting asks the service for nothing. Below the
// mount's root it has `.playfs/` besides, which is not listed, and is there whatever becomes of the tree. The kernel
// keeps the names in it without end, so another tree takes the place of the one that is shown as a whole: when head
// moves under a tree that nobody can write in, and when one that another process had open becomes free. Whoever has the
// directory open, or is in it, goes along. Thread-safe.
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
  Attempt<Found> lookup(const OperationPtr& op, const std::string& name) override;
  void head_moved() override { bring_up(); }
  void head_seen() override { bring_up(); }

 private:
  /// What is shown, fetched or opened at its first use.
  Attempt<NodePtr> tree(const OperationPtr& op) PLAYFS_EXCLUDES(mutex_);
  /// What is shown; nullptr before the first use.
  [[nodiscard]] NodePtr shown() const PLAYFS_EXCLUDES(mutex_);
  /// The tree as a node of its own; `refusal`: why nothing can be changed in it.
  [[nodiscard]] NodePtr made(const RevisionTreePtr& revision, const Error& refusal);
  /// A work tree in which it is possible to write, as a node that the kernel knows by this one's number.
  [[nodiscard]] NodePtr writable(const std::shared_ptr<WorkTree>& tree);
  /// Shows `tree`, unless another one is shown already, which is answered then.
  [[nodiscard]] NodePtr begin(const NodePtr& tree, const std::optional<Error>& refusal) PLAYFS_EXCLUDES(mutex_);
  /// Shows what is known to be there by now.
  void bring_up() PLAYFS_EXCLUDES(moving_, mutex_);
  /// False where that is not here. `come`: the revision that it is, where it is another one than before.
  [[nodiscard]] bool show_known(RevisionTreePtr& come) PLAYFS_EXCLUDES(moving_, mutex_);
  void replace(const NodePtr& tree) PLAYFS_EXCLUDES(mutex_);
  Attempt<AttributesReply> attributes_of_tree(const OperationPtr& op);
  /// Of the mount's root while the tree is not here, for what `stop` says: waits for it briefly, and for no time where
  /// somebody has just waited in vain.
  Attempt<AttributesReply> attributes_without_tree(const OperationPtr& op, Stop stop) PLAYFS_EXCLUDES(mutex_);
  /// Looks now and then whether the other process has let go of the work tree.
  void try_later();

  const ProjectId project_;
  const std::optional<RevisionId> revision_;  ///< to be shown, whatever head is
  Children children_;
  Mutex moving_;  ///< that the newest of two heads is the one that stays; taken before mutex_
  mutable Mutex mutex_;
  NodePtr shown_ PLAYFS_GUARDED_BY(mutex_);
  std::optional<Error> refusal_ PLAYFS_GUARDED_BY(mutex_);  ///< nullopt: it is the work tree, and stays
  SteadyTime look_again_ PLAYFS_GUARDED_BY(mutex_);         ///< when the root's attributes wait for the tree again
};

}  // namespace playfs::vfs
