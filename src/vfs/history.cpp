#include "vfs/history.h"

#include <algorithm>
#include <queue>

#include "model/lineage.h"

namespace playfs::vfs {
namespace {

struct Newer {
  bool operator()(const RevisionTreePtr& a, const RevisionTreePtr& b) const {
    return std::pair(a->revision.created_at, a->revision.id) < std::pair(b->revision.created_at, b->revision.id);
  }
};

/// More than concurrent agents ever merge at once.
constexpr std::size_t kMostParents = 32;

}  // namespace

std::span<const RevisionId> shown_parents(const Revision& revision) {
  return std::span(revision.parents).first(std::min(revision.parents.size(), kMostParents));
}

std::string shown_text(std::string_view text) {
  if (text.size() <= kMaxRecordSize) return std::string(text);
  std::size_t end = kMaxRecordSize;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // inside a character
  return std::string(text.substr(0, end)) + "…";
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

struct Walk {
  std::vector<RevisionTreePtr> line;  ///< as far as available here
  std::set<RevisionId> seen;
  std::vector<RevisionId> wanted;  ///< missing revisions that the line needs
};

Walk walk_from(Mount& mount, const OperationPtr& op, const RevisionId& head) {
  Walk walk;
  std::priority_queue<RevisionTreePtr, std::vector<RevisionTreePtr>, Newer> next;
  auto visit = [&](const RevisionId& id) {
    if (op->noted("gone/" + id.text())) return;
    if (auto tree = mount.site().try_revision(id)) next.push(std::move(tree));
    else if (!mount.site().was_absent(id)) walk.wanted.push_back(id);
  };
  ParentBudget budget;
  if (!head.empty() && walk.seen.insert(head).second) visit(head);
  while (!next.empty() && walk.line.size() < kMostHistory) {
    walk.line.push_back(next.top());
    next.pop();
    budget.next_revision();
    const auto parents = shown_parents(walk.line.back()->revision);
    for (std::size_t i = 0; i < parents.size(); ++i) {
      if (parents[i].empty() || walk.seen.contains(parents[i])) continue;
      if (!budget.allows(i)) break;
      walk.seen.insert(parents[i]);
      visit(parents[i]);
    }
  }
  if (walk.line.size() == kMostHistory) walk.wanted.clear();
  return walk;
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

Attempt<std::vector<RevisionTreePtr>> line_of(Mount& mount, const OperationPtr& op, const ProjectId& project,
                                              const RevisionId& head) {
  Walk walk = walk_from(mount, op, head);
  if (walk.wanted.empty()) return std::move(walk.line);
  // One revision names the next. If the list is here, or the line turns out to be long, fetch all of the project's
  // listed revisions at once. But a list that was never read may hold a hundred thousand revisions of strangers.
  const bool step = op->noted("history") || (!mount.site().try_list("revisions") && take_step(op));
  if (step) return missing(fetch_revisions(mount, op, project, std::move(walk.wanted)));
  PLAYFS_ATTEMPT(ListPtr list, known_list(mount, op, "revisions"));
  for (const content::Listed* item : revisions_of(*list, project)) {
    if (walk.wanted.size() >= kMostHistory) break;
    RevisionId id(item->id);
    if (!walk.seen.contains(id) && !mount.site().try_revision(id)) walk.wanted.push_back(std::move(id));
  }
  op->note("history");
  return missing(fetch_revisions(mount, op, project, std::move(walk.wanted)));
}

Attempt<std::vector<std::string>> branches_of(Mount& mount, const OperationPtr& op, const ProjectId& project,
                                              const RevisionId& head) {
  PLAYFS_ATTEMPT(ListPtr list, list_here(mount, op, "revisions"));
  PLAYFS_ATTEMPT(std::vector<RevisionTreePtr> line, line_of(mount, op, project, head));
  std::set<std::string> merged;
  for (const RevisionTreePtr& tree : line) {
    merged.insert(tree->revision.id.text());
    for (const RevisionId& parent : tree->revision.parents) merged.insert(parent.text());  // not every parent is walked
  }
  std::vector<std::string> branches;
  for (const content::Listed* item : revisions_of(*list, project)) {
    // Older than everything the walk covered: unknown.
    if (line.size() == kMostHistory && item->created_at < line.back()->revision.created_at) break;
    if (!merged.contains(item->id)) branches.push_back(item->id);
  }
  return branches;
}

std::vector<Revision> known_branches(Mount& mount, const OperationPtr& op, const ProjectId& project,
                                     const RevisionId& head, const std::vector<RevisionId>& seen) {
  std::set<RevisionId> candidates(seen.begin(), seen.end());
  ListPtr list = mount.site().try_list("revisions");
  if (list)
    for (const content::Listed* item : revisions_of(*list, project)) candidates.insert(RevisionId(item->id));
  if (candidates.empty() || head.empty()) return {};
  const Walk walk = walk_from(mount, op, head);
  if (walk.line.empty()) return {};
  std::vector<RevisionTreePtr> beside;
  for (const RevisionId& id : candidates) {
    auto tree = walk.seen.contains(id) ? nullptr : mount.site().try_revision(id);
    // Older than everything the walk covered: unknown.
    if (tree && tree->revision.project == project && !Newer()(tree, walk.line.back())) beside.push_back(tree);
  }
  std::set<RevisionId> behind;  // revisions that another one builds on
  for (const RevisionTreePtr& tree : beside)
    behind.insert(tree->revision.parents.begin(), tree->revision.parents.end());
  std::sort(beside.begin(), beside.end(), [](const auto& a, const auto& b) { return Newer()(b, a); });
  std::vector<Revision> branches;
  for (const RevisionTreePtr& tree : beside) {
    // The automatic merge that lost the race adds nothing to head, unless a publisher reported it as a branch.
    bool adds_nothing = link_of(*tree).is_merge && std::find(seen.begin(), seen.end(), tree->revision.id) == seen.end();
    if (!behind.contains(tree->revision.id) && !adds_nothing) branches.push_back(tree->revision);
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
    if (is_below && !op->noted("gone/" + item->id) && !mount.site().try_revision(below)) wanted.push_back(below);
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
  for (RevisionId id = head; !id.empty() && !op->noted("gone/" + id.text()) && seen.insert(id).second;) {
    auto tree = mount.site().try_revision(id);
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
