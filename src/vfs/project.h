// `projects/ID/`: a project's work tree, head, history and control files.
#pragma once

#include <string>

#include "model/ids.h"
#include "vfs/control_text.h"
#include "vfs/projects_in_use.h"
#include "vfs/virtual_directory.h"

namespace playfs::vfs {

/// What `status` shows; opens the work tree only if it may have staged changes.
[[nodiscard]] Attempt<ProjectStatus> status_here(Mount& mount, const OperationPtr& op, const ProjectId& project);

class ProjectDirectory final : public VirtualDirectory, public HeadView {
 public:
  ProjectDirectory(Mount& mount, NodePtr parent, std::string name, ProjectId project);
  void head_moved() override;
  void head_seen() override;

 protected:
  [[nodiscard]] mode_t type_of(const std::string& name) const override;
  NodePtr directory_in_use(const std::string& name) override;
  Attempt<Found> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;

 private:
  Attempt<Found> work(const OperationPtr& op);
  Attempt<Found> head(const OperationPtr& op);
  Attempt<Found> control_file(const OperationPtr& op, const std::string& name);
  /// The staged state, else that of the base.
  Attempt<ShownText> state(const OperationPtr& op);
  Attempt<Found> state_file(const OperationPtr& op);
  Attempt<Found> commit_file(const OperationPtr& op);

  const ProjectId project_;
};

}  // namespace playfs::vfs
