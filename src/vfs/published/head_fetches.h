// Which revision a project shows.
#pragma once

#include <functional>

#include "content/site.h"
#include "vfs/attempt.h"

namespace playfs::vfs {

class Mount;

/// The head as last seen, whatever its age.
Attempt<content::Head> head_here(Mount& mount, const ProjectId& id);
/// Whether the service says that it has no such project.
Attempt<bool> is_gone(Mount& mount, const OperationPtr& op, const ProjectId& id);
/// Like head_here(), but first asks the service about a project that is not being followed, for as long as the service
/// is worth waiting for.
Attempt<content::Head> head_for_use(Mount& mount, const OperationPtr& op, const ProjectId& id);
/// Whether head_for_use() asked for the head in this operation.
bool asked_for_head(const OperationPtr& op, const ProjectId& id);
/// The revision that the project shows, by head_for_use(); empty: nothing is published.
Attempt<RevisionId> shown_id(Mount& mount, const OperationPtr& op, const ProjectId& id);
/// The same with its tree, or nullptr.
Attempt<RevisionTreePtr> shown_here(Mount& mount, const OperationPtr& op, const ProjectId& id);
/// Calls `came`, inside the mount's gate, with the revision that the project shows, once it is available; never if
/// there is none or it cannot be fetched. Sends no request for what is already here.
void bring_shown(Mount& mount, const ProjectId& project, std::function<void(const RevisionTreePtr&)> came);

}  // namespace playfs::vfs
