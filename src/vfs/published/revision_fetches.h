// Published revisions: their trees, and the summaries that histories are made of.
#pragma once

#include <vector>

#include "content/revision_summary.h"
#include "vfs/attempt.h"

namespace playfs::vfs {

class Mount;
using content::RevisionSummary;
using content::SummaryPtr;

Attempt<RevisionTreePtr> revision_here(Mount& mount, const OperationPtr& op, const RevisionId& id);
/// Only what is here, without a request; nullptr if nothing is.
Attempt<RevisionTreePtr> known_revision(Mount& mount, const OperationPtr& op, const RevisionId& id);
/// A revision that must belong to the project: one project never shows another's bytes.
[[nodiscard]] Attempt<RevisionTreePtr> revision_of_project(Mount& mount, const OperationPtr& op, const RevisionId& id,
                                                           const ProjectId& project);

/// The summary of a revision, if one is in memory.
SummaryPtr summary_here(Mount& mount, const OperationPtr& op, const RevisionId& id);
/// Makes it, for the rest of the operation and for later ones.
SummaryPtr keep_summary(Mount& mount, const OperationPtr& op, const RevisionTree& tree);
/// Like known_revision().
Attempt<SummaryPtr> known_summary(Mount& mount, const OperationPtr& op, const RevisionId& id);
/// Fetches the missing ones among a project's revisions, all at once, and keeps their summaries in the operation. Notes
/// "gone/ID" for those that cannot be had.
Fetch fetch_revisions(Mount& mount, const OperationPtr& op, const ProjectId& project, std::vector<RevisionId> ids);

}  // namespace playfs::vfs
