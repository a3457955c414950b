// Attempts that query a project's history: which revisions exist, and which are on head's line.
//
// The walks are bounded: histories come from strangers, and parents can form any graph, including cycles.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vfs/published/revision_fetches.h"

namespace playfs::vfs {

/// How many revisions `log` and `branches/` look back.
inline constexpr std::size_t kMostHistory = 200;

/// The parents that histories show: only the first ones, since a stranger may have named any number.
std::span<const RevisionId> shown_parents(const Revision& revision);

using content::shown_text;

/// Limits which parents one history walk requests: always the first parent of each revision (the line it was made on),
/// and about as many others as there are revisions. So one walk costs at most a few requests per revision.
class ParentBudget {
 public:
  /// Call before visiting each revision's parents.
  void next_revision() { left_ += kEach; }
  /// Whether to look up the revision's `nth` parent, which has not been looked up yet.
  [[nodiscard]] bool allows(std::size_t nth) {
    if (left_ == 0) return nth == 0;
    --left_;
    return true;
  }

 private:
  static constexpr std::size_t kAtFirst = 32, kEach = 4;
  std::size_t left_ = kAtFirst;
};

/// The listed revisions of one project, newest first.
std::vector<const content::Listed*> revisions_of(const std::vector<content::Listed>& list, const ProjectId& project);

/// `head` and its ancestors, newest first, at most kMostHistory; revisions that the service no longer has are omitted.
Attempt<std::vector<SummaryPtr>> line_of(Mount& mount, const OperationPtr& op, const ProjectId& project,
                                         const RevisionId& head);

/// The revisions of the project, newest first, that are not on head's line.
Attempt<std::vector<std::string>> branches_of(Mount& mount, const OperationPtr& op, const ProjectId& project,
                                              const RevisionId& head);

/// The branches that `status` names: those that no other branch builds on and that add content of their own. Uses only
/// lists and revisions that are already here; sends no request. `seen`: revisions known to exist besides the listed
/// ones.
Attempt<std::vector<SummaryPtr>> known_branches(Mount& mount, const OperationPtr& op, const ProjectId& project,
                                                const RevisionId& head, const std::vector<RevisionId>& seen);

/// What was head at `time`: the newest revision created by then on the line of first parents from `head`, since a merge
/// names the line that head was on first. A branch merged later was not head. nullptr if there was no head yet.
/// `settled`: the line also has a newer revision, so commits on top of head cannot change the answer.
struct RevisionAt {
  RevisionTreePtr revision;
  bool settled = false;
};
Attempt<RevisionAt> revision_at(Mount& mount, const OperationPtr& op, const ProjectId& project, const RevisionId& head,
                                WallTime time);

}  // namespace playfs::vfs
