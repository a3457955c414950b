// `revisions/`, `branches/` and `at/` of one project.
#pragma once

#include <sys/stat.h>

#include <string>

#include "model/ids.h"
#include "vfs/directories/projects.h"
#include "vfs/directories/virtual_directory.h"

namespace playfs::vfs {

/// Starts fetching a revision and its contents, for the reader who will want it next.
void begin_fetching(Mount& mount, const RevisionId& id);

class RevisionsDirectory final : public VirtualDirectory {
 public:
  RevisionsDirectory(Mount& mount, NodePtr parent, std::string name, ProjectId project);

 protected:
  Attempt<LookupResult> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;
  [[nodiscard]] std::string made_of() const override { return "revisions"; }

 private:
  const ProjectId project_;
  DerivedNames derived_;
};

class BranchesDirectory final : public VirtualDirectory {
 public:
  BranchesDirectory(Mount& mount, NodePtr parent, std::string name, ProjectId project);

 protected:
  [[nodiscard]] mode_t type_of(const std::string&) const override { return S_IFLNK; }
  Attempt<LookupResult> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;
  [[nodiscard]] std::string made_of() const override { return "revisions"; }

 private:
  Attempt<std::vector<std::string>> branches(const OperationPtr& op);

  const ProjectId project_;
};

/// Accepts any ISO 8601 time or prefix of one; lists none.
class AtDirectory final : public VirtualDirectory {
 public:
  AtDirectory(Mount& mount, NodePtr parent, std::string name, ProjectId project);

 protected:
  Attempt<LookupResult> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;

 private:
  const ProjectId project_;
};

}  // namespace playfs::vfs
