// `projects/ID/`: a project's work tree, its head, its history, and the control files for it.
#pragma once

#include <atomic>
#include <string>

#include "base/mutex.h"
#include "model/ids.h"
#include "vfs/control_text.h"
#include "vfs/virtual_directory.h"

namespace playfs::vfs {

/// Before the first use of a project in a mount: waits a moment for the head that the service has now, where an old
/// one is known, and for as long as it takes where none is.
[[nodiscard]] Attempt<content::Head> head_for_use(Mount& mount, const OperationPtr& op, const ProjectId& project,
                                                  bool first_use);

/// What `status` says; opens the work tree only where something may be staged in it.
[[nodiscard]] Attempt<ProjectStatus> status_here(Mount& mount, const OperationPtr& op, const ProjectId& project);

class ProjectDirectory final : public VirtualDirectory {
 public:
  ProjectDirectory(Mount& mount, NodePtr parent, std::string name, ProjectId project);

 protected:
  Attempt<Found> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;

 private:
  Attempt<Found> work(const OperationPtr& op, const content::Head& head);
  Attempt<Found> control_file(const OperationPtr& op, const std::string& name, const content::Head& head);
  Attempt<Found> state_file(const OperationPtr& op, const content::Head& head);
  Attempt<Found> commit_file(const OperationPtr& op);

  const ProjectId project_;
  std::atomic<bool> used_ = false;
};

}  // namespace playfs::vfs
