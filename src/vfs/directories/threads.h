// `threads/`: which threads exist, by id, title and kind.
#pragma once

#include "vfs/directories/projects.h"
#include "vfs/directories/virtual_directory.h"

namespace playfs::vfs {

class ThreadsDirectory final : public VirtualDirectory {
 public:
  using VirtualDirectory::VirtualDirectory;

 protected:
  Attempt<LookupResult> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;
  [[nodiscard]] std::string made_of() const override { return "threads"; }

 private:
  Async<RequestAnswer> start(OperationPtr op, std::string text);

  DerivedNames derived_;
  ListedIds ids_;
};

/// A directory for each kind: those that the service documents, and any others that threads have.
class ByKindDirectory final : public VirtualDirectory {
 public:
  using VirtualDirectory::VirtualDirectory;

 protected:
  Attempt<LookupResult> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;
  [[nodiscard]] std::string made_of() const override { return "threads"; }

 private:
  DerivedNames derived_;
};

}  // namespace playfs::vfs
