// Questions to a project's history: which revisions there are, which of them lie on head's line. As attempts.
//
// The walks are bounded: histories come from strangers, and parents may form any graph, cycles included.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vfs/fetches.h"

namespace playfs::vfs {

/// How far back `log` and `branches/` look.
inline constexpr std::size_t kMostHistory = 200;

/// The parents of a revision that histories show, and follow at all: the first of as many as a stranger may have named.
std::span<const RevisionId> shown_parents(const Revision& revision);

/// An author or a message as histories show it, as far as a record of the service has room for one.
std::string shown_text(std::string_view text);

/// Which parents one look at a history asks for: the first of each revision, which is the line that it was made on, and
/// of the others about as many as there are revisions, so that no look costs more than a few requests for each.
class ParentBudget {
 public:
  /// Before the parents of each revision.
  void next_revision() { left_ += kEach; }
  /// Whether the revision's `nth` parent, which was not looked for yet, is to be.
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

/// `head` and its ancestors, newest first, at most kMostHistory; what the service no longer has is left out.
Attempt<std::vector<RevisionTreePtr>> line_of(Mount& mount, const OperationPtr& op, const ProjectId& project,
                                              const RevisionId& head);

/// The revisions of the project, newest first, that are not on head's line.
Attempt<std::vector<std::string>> branches_of(Mount& mount, const OperationPtr& op, const ProjectId& project,
                                              const RevisionId& head);

/// Those of them that no other leads to, and that hold something of their own: what `status` names. Only as far as list
/// and revisions are here already; nothing is asked for. `seen`: revisions that are known to be there beside the list.
std::vector<Revision> known_branches(Mount& mount, const OperationPtr& op, const ProjectId& project,
                                     const RevisionId& head, const std::vector<RevisionId>& seen);

/// What was head at `time`: the newest revision created until then on the line of first parents from `head`, since a
/// merge names first the line that head was on. A branch that head took in later was not head. nullptr where there was
/// none yet. `settled`: the line has a newer one too, so that what head becomes from here does not change the answer.
struct RevisionAt {
  RevisionTreePtr revision;
  bool settled = false;
};
Attempt<RevisionAt> revision_at(Mount& mount, const OperationPtr& op, const ProjectId& project, const RevisionId& head,
                                WallTime time);

}  // namespace playfs::vfs
