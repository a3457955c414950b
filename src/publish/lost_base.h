// Handles a base that the service lost when it went back to an older state: detects it, finds what is left of its line,
// and keeps what it held.
//
// A revision counts as gone only if it was answered with 404 for long enough (absences.h) and head does not hold it: a
// revision may be hidden while the log continues on it, and a network error says nothing. Until that is decided, all
// functions fail with `busy`. For one thread; blocking.
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

/// The newest ancestor of `lost` that `head` still holds; nullptr if the service has nothing of that line. If the
/// revisions in between are gone, so that parents do not tell, it is the newest revision on head's line that is older
/// than `lost`: head never loses anything while it moves forward, so `lost` held that one.
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
/// The fate of a base.
struct BaseFate {
  bool is_lost = false;
  RevisionTreePtr survivor;  ///< see find_survivor()
};
/// Determines it. If the base is lost, journals that and reports it, once. `begun`: when the project was created.
Result<BaseFate> find_fate(const BaseParts& parts, const RevisionTreePtr& base, const RevisionTreePtr& head,
                           WallTime begun);

/// Files that were moved, or are local-only, refer to the revision that had them under their old name, which may be
/// gone even if the tree's base is not. Gives them bytes of their own; content that is unavailable is noted as lost.
/// Skips what `survivor` holds, which is or will be the tree's base. May run during a commit.
Status keep_what_lies_elsewhere(Upstream& upstream, Absences& absences, stage::Stage& stage,
                                const RevisionTreePtr& survivor);

/// Makes `survivor` the base of the work tree, in place of the lost one. The tree does not change, so what the lost
/// base held and `survivor` does not is staged; its bytes, if available, are then stored here and not only in a cache.
/// Fails with `busy` during a publication. Idempotent, so it can be repeated after a crash.
Status keep_what_was_lost(Upstream& upstream, Absences& absences, stage::Stage& stage, const RevisionTreePtr& survivor,
                          const stage::Told& told);

/// The sides of a merge of a work tree with `theirs`, which is on head's line.
struct LostSides {
  Snapshot& base;
  Snapshot& ours;
  const RevisionTreePtr& theirs;
  const RevisionTreePtr& on;  ///< the tree's base
  /// Adds the hash of its content to one of our entries. May be empty if all have theirs.
  std::function<Status(const std::string& path, FileEntry& entry)> tell = {};
  /// Whether one of our files is known but its bytes are unavailable. May be empty.
  std::function<bool(const std::string& path)> lacks_bytes = {};
};
/// Handles lost content that head's line has again: the service went back by mistake, its reads lagged, or somebody
/// else who had kept it published it again. If the tree still has it unchanged, it is nobody's change here: base and
/// ours get the same entry, so that what head did to it since is not undone. The same goes for a file whose bytes are
/// nowhere, if head has another version of it by now. What was edited here since the loss stays a change. Returns
/// whether head's line has everything that the tree still has of it.
Result<bool> add_what_came_back(Upstream& upstream, Journal& journal, const LostSides& sides);

}  // namespace playfs::publish
