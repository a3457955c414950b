// `.playfs/`: the mount's own files.
//
// An exported tree has a directory of that name, too. If such a tree is copied into a mount of a single work tree
// (`cp -a`, rsync, tar), the files go to the work tree's own `.playfs/`, as in `work/` of other mounts, and are never
// published.
#pragma once

#include <atomic>

#include "vfs/control/growing_file.h"
#include "vfs/directories/virtual_directory.h"

namespace playfs::vfs {

class OwnDirectory final : public VirtualDirectory {
 public:
  using VirtualDirectory::VirtualDirectory;

  Attempt<AttributesReply> attributes(const OperationPtr& op) override;
  Attempt<AttributesReply> set_attributes(const OperationPtr& op, const SetAttributes& change) override;
  Attempt<LookupResult> make_node(const OperationPtr& op, const std::string& name, mode_t mode, dev_t device) override;
  Attempt<LookupResult> make_directory(const OperationPtr& op, const std::string& name, mode_t mode) override;
  Attempt<LookupResult> make_symlink(const OperationPtr& op, const std::string& name,
                                     const std::string& target) override;
  Attempt<LookupResult> link(const OperationPtr& op, const NodePtr& node, const std::string& name) override;
  Attempt<void> unlink(const OperationPtr& op, const std::string& name) override;
  Attempt<void> remove_directory(const OperationPtr& op, const std::string& name) override;
  Attempt<void> rename(const OperationPtr& op, const std::string& name, const NodePtr& new_parent,
                       const std::string& new_name, unsigned flags) override;
  Attempt<void> set_xattr(const OperationPtr& op, const std::string& name) override;
  Attempt<void> remove_xattr(const OperationPtr& op, const std::string& name) override;

 protected:
  Attempt<LookupResult> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;

 private:
  /// Whether programs may create files here.
  [[nodiscard]] bool takes() const;
  [[nodiscard]] bool is_own(const std::string& name) const;
  /// The work tree's directory of this name; nullptr if there is none.
  Attempt<NodePtr> kept(const OperationPtr& op);
  /// The same for a change of `name`: refuses the mount's own names, and creates the directory if it is missing.
  Attempt<NodePtr> kept_for(const OperationPtr& op, const std::string& name);
  Attempt<LookupResult> growing(const OperationPtr& op, const std::string& name);
  [[nodiscard]] std::string log_text(const std::string& name) const;
  void listen();
  /// Updates the log files that the kernel refers to.
  void appended();
  [[nodiscard]] Json status_json() const;
  [[nodiscard]] Json limits_json() const;

  std::atomic<bool> listening_ = false;
  std::atomic<bool> update_due_ = false;
};

}  // namespace playfs::vfs
