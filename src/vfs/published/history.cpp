#include "vfs/published/history.h"

#include "vfs/attempt_fetches.h"
#include "vfs/mount.h"
#include "vfs/published/list_fetches.h"

#include <algorithm>
#include <queue>

namespace playfs::vfs {
namespace {

struct Newer {
  bool operator()(const SummaryPtr& a, const SummaryPtr& b) const {
    return std::pair(a->created_at, a->id) < std::pair(b->created_at, b->id);
  }
};

}  // namespace

std::span<const RevisionId> shown_parents(const Revision& revision) {
  return std::span(revision.parents).first(std::min(revision.parents.size(), content::kMostShownParents));
}

std::vector<const content::Listed*> revisions_of(const std::vector<content::Listed>& list, const ProjectId& project) {
  std::vector<const content::Listed*> of_project;
  for (const content::Listed& item : list) {
    if (item.project == project.text()) of_project.push_back(&item);
  }
  return of_project;
}

namespace {

/// Sequential parent requests before the service's whole list of revisions is read instead.
constexpr int kMostSteps = 16;

/// Stored revisions that one attempt reads itself. The rest takes longer, so a walk over them is a fetch.
constexpr std::size_t kMostReadAtOnce = 32;

/// Finds revisions that are here. An attempt leaves large ones, and ordinary ones beyond the first few, to a fetch.
class Finder {
 public:
  enum class Reads { few, ordinary, all };

  Finder(Mount& mount, OperationPtr op, Reads reads) : mount_(mount), op_(std::move(op)), reads_(reads) {}

  /// nullptr if it is not here, or if leaves().
  SummaryPtr find(const RevisionId& id) {
    if (auto summary = summary_here(mount_, op_, id)) return summary;
    const std::string not_here = "not here/" + id.text();
    if (op_->noted(not_here)) return nullptr;
    if (reads_ == Reads::all) {
      if (auto tree = mount_.site().try_revision(id)) return keep_summary(mount_, op_, *tree);
      op_->note(not_here);  // also what cannot be read
      return nullptr;
    }
    if (leaves_) return nullptr;
    if (reads_ == Reads::few && read_ == kMostReadAtOnce) {
      leaves_ = Reads::ordinary;
      return nullptr;
    }
    auto here = mount_.site().revision_at_once(id);
    if (here.takes_long) leaves_ = Reads::all;
    if (!here.tree) return nullptr;
    ++read_;
    return keep_summary(mount_, op_, *here.tree);
  }
  /// What has to be left to a fetch, if anything.
  [[nodiscard]] std::optional<Reads> leaves() const { return leaves_; }

 private:
  Mount& mount_;
  const OperationPtr op_;
  const Reads reads_;
  std::size_t read_ = 0;
  std::optional<Reads> leaves_;
};

/// Runs `look` again where it may read more: large records on a thread of their own, so that ordinary ones do not wait
/// for them.
template <class Look>
Fetch read_for(Mount& mount, const OperationPtr& op, Finder::Reads reads, Look look) {
  Executor& threads = reads == Finder::Reads::all ? mount.large() : mount.reading();
  return off_thread(mount, threads, [&mount, op, reads, look](const CancelToken& cancel, Callback<void> done) {
    Finder finder(mount, op, reads);
    look(finder, cancel);
    done({});
  });
}

struct Walk {
  std::vector<SummaryPtr> line;  ///< as far as available here
  std::set<RevisionId> seen;
  std::vector<RevisionId> wanted;  ///< missing revisions that the line needs
};

Walk walk_from(Mount& mount, const OperationPtr& op, const RevisionId& head, Finder& finder,
               const CancelToken& cancel = {}) {
  Walk walk;
  std::priority_queue<SummaryPtr, std::vector<SummaryPtr>, Newer> next;
  auto visit = [&](const RevisionId& id) {
    if (op->noted("gone/" + id.text())) return;
    if (auto summary = finder.find(id)) next.push(std::move(summary));
    else if (id == head ? !mount.site().was_absent(id) : !mount.site().was_absent_lately(id)) walk.wanted.push_back(id);
  };
  ParentBudget budget;
  if (!head.empty() && walk.seen.insert(head).second) visit(head);
  while (!next.empty() && walk.line.size() < kMostHistory && !cancel.cancelled()) {
    walk.line.push_back(next.top());
    next.pop();
    budget.next_revision();
    const auto parents = walk.line.back()->shown_parents();
    for (std::size_t i = 0; i < parents.size() && !cancel.cancelled(); ++i) {
      if (parents[i].empty() || walk.seen.contains(parents[i])) continue;
      if (!budget.allows(i)) break;
      walk.seen.insert(parents[i]);
      visit(parents[i]);
    }
  }
  if (walk.line.size() == kMostHistory) walk.wanted.clear();
  return walk;
}

/// The walk over what is here; a fetch first if much has to be read for it.
Attempt<Walk> walk_here(Mount& mount, const OperationPtr& op, const RevisionId& head) {
  Finder finder(mount, op, Finder::Reads::few);
  Walk walk = walk_from(mount, op, head, finder);
  if (!finder.leaves()) return walk;
  return missing(read_for(mount, op, *finder.leaves(), [&mount, op, head](Finder& reader, const CancelToken& cancel) {
    static_cast<void>(walk_from(mount, op, head, reader, cancel));
  }));
}

/// Whether a revision is here, without reading a large one.
bool is_here(Mount& mount, const OperationPtr& op, const RevisionId& id) {
  if (summary_here(mount, op, id)) return true;
  const auto here = mount.site().revision_at_once(id);
  return here.tree || here.takes_long;
}

/// Whether the operation may take one more step.
bool take_step(const OperationPtr& op) {
  for (int step = 0; step < kMostSteps; ++step) {
    const std::string fact = "step/" + std::to_string(step);
    if (op->noted(fact)) continue;
    op->note(fact);
    return true;
  }
  return false;
}

}  // namespace

Attempt<std::vector<SummaryPtr>> line_of(Mount& mount, const OperationPtr& op, const ProjectId& project,
                                         const RevisionId& head) {
  PLAYFS_ATTEMPT(Walk walk, walk_here(mount, op, head));
  if (walk.wanted.empty()) return std::move(walk.line);
  // One revision names the next. If the list is here, or the line turns out to be long, fetch all of the project's
  // listed revisions at once. But a list that was never read may hold a hundred thousand revisions of strangers.
  const bool step = op->noted("history") || (!mount.site().try_list("revisions") && take_step(op));
  if (step) return missing(fetch_revisions(mount, op, project, std::move(walk.wanted)));
  PLAYFS_ATTEMPT(ListPtr list, known_list(mount, op, "revisions"));
  for (const content::Listed* item : revisions_of(*list, project)) {
    if (walk.wanted.size() >= kMostHistory) break;
    RevisionId id(item->id);
    if (!walk.seen.contains(id) && !is_here(mount, op, id)) walk.wanted.push_back(std::move(id));
  }
  op->note("history");
  return missing(fetch_revisions(mount, op, project, std::move(walk.wanted)));
}

Attempt<std::vector<std::string>> branches_of(Mount& mount, const OperationPtr& op, const ProjectId& project,
                                              const RevisionId& head) {
  PLAYFS_ATTEMPT(ListPtr list, list_here(mount, op, "revisions"));
  PLAYFS_ATTEMPT(std::vector<SummaryPtr> line, line_of(mount, op, project, head));
  std::set<std::string> merged;
  for (const SummaryPtr& revision : line) {
    merged.insert(revision->id.text());
    for (const RevisionId& parent : revision->parents) merged.insert(parent.text());  // not every parent is walked
  }
  std::vector<std::string> branches;
  for (const content::Listed* item : revisions_of(*list, project)) {
    // Older than everything the walk covered: unknown.
    if (line.size() == kMostHistory && item->created_at < line.back()->created_at) break;
    if (!merged.contains(item->id)) branches.push_back(item->id);
  }
  return branches;
}

Attempt<std::vector<SummaryPtr>> known_branches(Mount& mount, const OperationPtr& op, const ProjectId& project,
                                                const RevisionId& head, const std::vector<RevisionId>& seen) {
  std::vector<SummaryPtr> branches;
  std::set<RevisionId> candidates(seen.begin(), seen.end());
  ListPtr list = mount.site().try_list("revisions");
  if (list)
    for (const content::Listed* item : revisions_of(*list, project)) candidates.insert(RevisionId(item->id));
  if (candidates.empty() || head.empty()) return branches;
  PLAYFS_ATTEMPT(const Walk walk, walk_here(mount, op, head));
  if (walk.line.empty()) return branches;
  std::vector<SummaryPtr> beside;
  auto find_beside = [candidates = std::move(candidates), walk, project, seen](Finder& finder,
                                                                               const CancelToken& cancel) {
    std::vector<SummaryPtr> found;
    for (const RevisionId& id : candidates) {
      if (cancel.cancelled()) break;
      auto summary = walk.seen.contains(id) ? nullptr : finder.find(id);
      if (!summary || summary->project != project) continue;
      // If it is older than everything the walk covered, only a publisher knows that it is a branch.
      if (!Newer()(summary, walk.line.back()) || std::find(seen.begin(), seen.end(), id) != seen.end())
        found.push_back(summary);
    }
    return found;
  };
  Finder finder(mount, op, Finder::Reads::few);
  beside = find_beside(finder, {});
  if (finder.leaves()) return missing(read_for(mount, op, *finder.leaves(), find_beside));
  std::set<RevisionId> behind;  // revisions that another one builds on
  for (const SummaryPtr& revision : beside) behind.insert(revision->parents.begin(), revision->parents.end());
  std::sort(beside.begin(), beside.end(), [](const auto& a, const auto& b) { return Newer()(b, a); });
  for (const SummaryPtr& revision : beside) {
    // The automatic merge that lost the race adds nothing to head, unless a publisher reported it as a branch.
    const bool adds_nothing =
        revision->is_automatic_merge && std::find(seen.begin(), seen.end(), revision->id) == seen.end();
    if (!behind.contains(revision->id) && !adds_nothing) branches.push_back(revision);
  }
  return branches;
}

namespace {

/// Fetches `id`: alone if the list of revisions is not here or the line is short; otherwise along with the project's
/// older listed revisions, which include its ancestors.
Attempt<RevisionAt> fetch_down_from(Mount& mount, const OperationPtr& op, const ProjectId& project,
                                    const RevisionId& id) {
  if (!mount.site().try_list("revisions") && take_step(op)) return missing(fetch_revisions(mount, op, project, {id}));
  PLAYFS_ATTEMPT(ListPtr list, known_list(mount, op, "revisions"));
  std::vector<RevisionId> wanted = {id};
  bool is_below = false;
  for (const content::Listed* item : revisions_of(*list, project)) {
    RevisionId below(item->id);
    if (is_below && !op->noted("gone/" + item->id) && !is_here(mount, op, below)) wanted.push_back(below);
    is_below = is_below || below == id;
    if (wanted.size() >= kMostHistory) break;
  }
  return missing(fetch_revisions(mount, op, project, std::move(wanted)));
}

}  // namespace

Attempt<RevisionAt> revision_at(Mount& mount, const OperationPtr& op, const ProjectId& project, const RevisionId& head,
                                WallTime time) {
  RevisionAt at;
  std::set<RevisionId> seen;
  /// How far a fetch has followed the line of first parents.
  struct End {
    RevisionId revision;
    bool settled = false;
  };
  const std::string name = "at/" + head.text();
  const auto end = op->held<End>(name);
  at.settled = end && end->settled;
  for (RevisionId id = end ? end->revision : head;
       !id.empty() && !op->noted("gone/" + id.text()) && seen.insert(id).second;) {
    RevisionTreePtr tree = op->held<RevisionTree>("tree/" + id.text());
    content::RevisionAtOnce here;
    if (!tree) here = mount.site().revision_at_once(id);
    if (!tree) tree = std::move(here.tree);
    if (here.takes_long)
      return missing(off_thread(
          mount, mount.large(),
          [&mount, op, project, time, name, id, settled = at.settled](const CancelToken& cancel, Callback<void> done) {
            End now{id, settled};
            std::set<RevisionId> passed;
            while (!now.revision.empty() && passed.insert(now.revision).second && !cancel.cancelled()) {
              auto next = mount.site().try_revision(now.revision);
              if (!next) break;
              if (next->revision.created_at <= time || next->revision.project != project) {
                op->hold("tree/" + now.revision.text(), std::move(next));
                break;
              }
              now.settled = true;
              now.revision = next->revision.parents.empty() ? RevisionId() : next->revision.parents.front();
            }
            op->hold(name, std::make_shared<const End>(std::move(now)));
            done({});
          }));
    if (!tree) return fetch_down_from(mount, op, project, id);
    if (tree->revision.project != project) break;
    if (tree->revision.created_at <= time) {
      at.revision = std::move(tree);
      break;
    }
    at.settled = true;
    id = tree->revision.parents.empty() ? RevisionId() : tree->revision.parents.front();
  }
  return at;
}

}  // namespace playfs::vfs
