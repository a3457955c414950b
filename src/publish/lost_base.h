// A base that the service no longer has, because it went back to an older state: seeing it, finding what is left of
// the line that it stood on, and keeping what it held.
//
// Only what is answered with 404 long enough counts as gone (absences.h), and only where head does not hold the
// revision: a revision may be hidden while the log that is built on it goes on, and a network that fails says nothing.
// Until that is decided all of this fails with `busy`. For one thread; waits.
#pragma once

#include <functional>
#include <string>

#include "content/event_log.h"
#include "publish/absences.h"
#include "publish/journal.h"
#include "publish/merging.h"
#include "publish/upstream.h"
#include "stage/stage.h"

namespace playfs::publish {

/// The newest revision that `lost` was made on and that `head` still holds; nullptr where the service has nothing of
/// that line. Where the revisions in between are gone, so that parents do not tell, it is the newest one on head's line
/// that is older than `lost`: head never loses anything while it moves forward, so `lost` held that one.
Result<RevisionTreePtr> find_survivor(Upstream& upstream, Absences& absences, Merging& merging,
                                      const RevisionTreePtr& lost, const RevisionTreePtr& head);

struct BaseParts {
  const ProjectId& project;
  Upstream& upstream;
  Absences& absences;
  Merging& merging;
  Journal& journal;
  content::EventLog& events;
};
/// What became of a base.
struct BaseFate {
  bool is_lost = false;
  RevisionTreePtr survivor;  ///< as find_survivor()
};
/// Asks, and where the base is lost writes that down and says so, once. `begun`: when the project was made.
Result<BaseFate> find_fate(const BaseParts& parts, const RevisionTreePtr& base, const RevisionTreePtr& head,
                           WallTime begun);

/// Files that were moved, or that are kept here only, lie in the revision that had them under their old name, and that
/// one may be gone while the tree's base is not, or no longer. They get bytes of their own; what cannot be had is noted
/// as lost. What `survivor`, which is below the tree or is to be, holds is safe and not asked for. A commit may be
/// under way.
Status keep_what_lies_elsewhere(Upstream& upstream, Absences& absences, stage::Stage& stage,
                                const RevisionTreePtr& survivor);

/// Puts `survivor` below the work tree in place of its lost base. The tree stays as it is, so what the base held and
/// `survivor` does not is staged; as far as it can be had, its bytes are here then, and in no cache. Fails with `busy`
/// while a publication is under way. Repeating it after a crash comes to the same.
Status keep_what_was_lost(Upstream& upstream, Absences& absences, stage::Stage& stage, const RevisionTreePtr& survivor,
                          const stage::Told& told);

/// The sides of a merge of a work tree with `theirs`, which is on head's line.
struct LostSides {
  Snapshot& base;
  Snapshot& ours;
  const RevisionTreePtr& theirs;
  const RevisionTreePtr& on;  ///< what the tree stands on
  /// Gives an entry of ours the hash of its content. May be empty where all have theirs.
  std::function<Status(const std::string& path, FileEntry& entry)> tell = {};
  /// Whether of a file of ours it is only known what stood there: its bytes could not be had any more. May be empty.
  std::function<bool(const std::string& path)> lacks_bytes = {};
};
/// What was lost and still stands in the tree as it was is nobody's change here where head's line has got it again
/// since: the service went back by mistake, or its reads lagged, or somebody who had kept it too published it again.
/// Base and ours have it alike then, so that what head did to it since is not undone. So they have a file whose bytes
/// are nowhere, where head has another one by now. What was edited here since it was lost stays a change. Whether
/// head's line has got all that the tree still has of it.
Result<bool> add_what_came_back(Upstream& upstream, Journal& journal, const LostSides& sides);

}  // namespace playfs::publish
