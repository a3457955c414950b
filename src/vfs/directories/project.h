// `projects/ID/`: a project's work tree, head, history and control files.
#pragma once

#include <string>

#include "model/ids.h"
#include "vfs/control/control_text.h"
#include "vfs/directories/virtual_directory.h"
#include "vfs/projects_in_use.h"

namespace playfs::vfs {

/// What `status` shows; opens the work tree only if it may have staged changes.
[[nodiscard]] Attempt<ProjectStatus> status_here(Mount& mount, const OperationPtr& op, const ProjectId& project);

class ProjectDirectory final : public VirtualDirectory, public HeadView {
 public:
  ProjectDirectory(Mount& mount, NodePtr parent, std::string name, ProjectId project);
  void head_moved() override;
  void head_seen() override;

 protected:
  [[nodiscard]] bool has_records() const override { return true; }
  [[nodiscard]] mode_t type_of(const std::string& name) const override;
  NodePtr directory_in_use(const std::string& name) override;
  Attempt<LookupResult> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;

 private:
  Attempt<LookupResult> work(const OperationPtr& op);
  Attempt<LookupResult> head(const OperationPtr& op);
  Attempt<LookupResult> control_file(const OperationPtr& op, const std::string& name);
  /// The staged state, else that of the base.
  Attempt<ShownText> state(const OperationPtr& op);
  Attempt<LookupResult> state_file(const OperationPtr& op);
  Async<RequestAnswer> stage_state(OperationPtr op, std::string text);
  Attempt<LookupResult> commit_file(const OperationPtr& op);
  Async<RequestAnswer> commit(OperationPtr op, std::string text);

  const ProjectId project_;
};

}  // namespace playfs::vfs
