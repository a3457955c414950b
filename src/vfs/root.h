// What stands at the root of a mount: everything, or one project's work tree, or one of its revisions.
#pragma once

#include <atomic>

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
class TreeRoot final : public Node {
 public:
  explicit TreeRoot(Mount& mount) : Node(mount, nullptr, std::string()) {}

  Attempt<NodePtr> target(const OperationPtr& op) override;
  Attempt<std::shared_ptr<WorkTree>> work_tree(const OperationPtr& op) override;
  Attempt<AttributesReply> attributes(const OperationPtr& op) override;
  Attempt<Found> lookup(const OperationPtr& op, const std::string& name) override;

 private:
  Children children_;
  std::atomic<bool> used_ = false;
};

}  // namespace playfs::vfs
