// Where a project's head stands, seen from a revision of ours. Blocking; for a thread that may wait.
#pragma once

#include "base/cancel.h"
#include "base/result.h"
#include "content/site.h"
#include "model/records.h"

namespace playfs::publish {

enum class Position {
  base,       ///< still where the revision was made, or nowhere: it may be moved
  ours,       ///< on the revision
  built_on,   ///< on a revision that has ours among its ancestors
  elsewhere,  ///< on somebody else's; ours is a branch
};

struct HeadView {
  Position position = Position::elsewhere;
  RevisionId head;  ///< empty where the project has none
};

/// Asks the service for head, whatever is known, and walks from there through parents until ours is found, or until
/// it cannot be found any more: ancestors are looked for among `most` revisions, none of them older than ours.
/// Revisions that cannot be read count as having no parents.
Result<HeadView> look_at_head(content::Site& site, const ProjectId& project, const RevisionId& base,
                              const RevisionTreePtr& ours, const CancelToken& cancel, std::size_t most = 256);

}  // namespace playfs::publish
