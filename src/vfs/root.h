// What stands at the root of a mount: everything, or one project's work tree, or one of its revisions.
#pragma once

#include <optional>

#include "vfs/projects_in_use.h"
#include "vfs/virtual_directory.h"

namespace playfs::vfs {

/// By the mount's options.
NodePtr make_root(Mount& mount);

class RootDirectory final : public VirtualDirectory {
 public:
  explicit RootDirectory(Mount& mount) : VirtualDirectory(mount, nullptr, std::string()) {}

 protected:
  Attempt<Found> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;
};

/// Stands for the tree that the options name, which is fetched or opened at its first use: mounting asks the service
/// for nothing. Has `.playfs/` besides, which is not listed.
///
/// The kernel keeps the root's names without end, so another tree takes the place of the one that is shown as a whole:
/// when head moves under a tree that nobody can write in, and when one that another process had open becomes free.
class TreeRoot final : public Node, public HeadView {
 public:
  explicit TreeRoot(Mount& mount) : Node(mount, nullptr, std::string()) {}

  Attempt<NodePtr> target(const OperationPtr& op) override;
  Attempt<std::shared_ptr<WorkTree>> work_tree(const OperationPtr& op) override;
  Attempt<AttributesReply> attributes(const OperationPtr& op) override;
  Attempt<Found> lookup(const OperationPtr& op, const std::string& name) override;
  void head_moved() override { bring_up(); }
  void head_seen() override { bring_up(); }

 private:
  /// What is shown; nullptr before the first use.
  [[nodiscard]] NodePtr shown() const PLAYFS_EXCLUDES(mutex_);
  /// The tree as a node of its own; `refusal`: why nothing can be changed in it.
  [[nodiscard]] NodePtr made(const RevisionTreePtr& revision, const Error& refusal);
  /// Shows `tree`, unless another one is shown already, which is answered then.
  [[nodiscard]] NodePtr begin(const NodePtr& tree, const std::optional<Error>& refusal) PLAYFS_EXCLUDES(mutex_);
  /// Shows what is known to be there by now.
  void bring_up() PLAYFS_EXCLUDES(moving_, mutex_);
  /// False where that is not here. `come`: the revision that it is, where it is another one than before.
  [[nodiscard]] bool show_known(RevisionTreePtr& come) PLAYFS_EXCLUDES(moving_, mutex_);
  void replace(const NodePtr& tree) PLAYFS_EXCLUDES(mutex_);
  /// Looks now and then whether the other process has let go of the work tree.
  void try_later();

  Children children_;
  Mutex moving_;  ///< that the newest of two heads is the one that stays; taken before mutex_
  mutable Mutex mutex_;
  NodePtr shown_ PLAYFS_GUARDED_BY(mutex_);
  std::optional<Error> refusal_ PLAYFS_GUARDED_BY(mutex_);  ///< nullopt: it is the work tree, and stays
};

}  // namespace playfs::vfs
