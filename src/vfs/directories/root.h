// The root of a mount: everything, one project's work tree, or one of its revisions.
#pragma once

#include "vfs/directories/virtual_directory.h"

namespace playfs::vfs {

/// Chosen by the mount's options.
NodePtr make_root(Mount& mount);

class RootDirectory final : public VirtualDirectory {
 public:
  explicit RootDirectory(Mount& mount) : VirtualDirectory(mount, nullptr, std::string()) {}

 protected:
  Attempt<LookupResult> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;
};

}  // namespace playfs::vfs
