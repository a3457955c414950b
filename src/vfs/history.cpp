#include "vfs/history.h"

#include <algorithm>
#include <queue>

namespace playfs::vfs {
namespace {

struct Newer {
  bool operator()(const RevisionTreePtr& a, const RevisionTreePtr& b) const {
    return std::pair(a->revision.created_at, a->revision.id) < std::pair(b->revision.created_at, b->revision.id);
  }
};

}  // namespace

std::vector<const content::Listed*> revisions_of(const std::vector<content::Listed>& list, const ProjectId& project) {
  std::vector<const content::Listed*> of_project;
  for (const content::Listed& item : list) {
    if (item.project == project.text()) of_project.push_back(&item);
  }
  return of_project;
}

Attempt<std::vector<RevisionTreePtr>> line_of(Mount& mount, const OperationPtr& op, const ProjectId& project,
                                              const RevisionId& head) {
  std::vector<RevisionTreePtr> line;
  if (head.empty()) return line;
  std::vector<RevisionId> wanted;
  std::set<RevisionId> seen;
  std::priority_queue<RevisionTreePtr, std::vector<RevisionTreePtr>, Newer> next;
  auto visit = [&](const RevisionId& id) {
    if (id.empty() || !seen.insert(id).second || op->noted("gone/" + id.text())) return;
    if (auto tree = mount.site().try_revision(id)) next.push(std::move(tree));
    else wanted.push_back(id);
  };
  visit(head);
  while (!next.empty() && line.size() < kMostHistory) {
    line.push_back(next.top());
    next.pop();
    for (const RevisionId& parent : line.back()->revision.parents) visit(parent);
  }
  if (wanted.empty() || line.size() == kMostHistory) return line;
  // One revision leads to the next: to save the round trips, bring all that are listed as the project's at once.
  if (op->noted("history")) return missing(fetch_revisions(mount, op, std::move(wanted)));
  PLAYFS_ATTEMPT(ListPtr list, known_list(mount, op, "revisions"));
  for (const content::Listed* item : revisions_of(*list, project)) {
    if (wanted.size() >= kMostHistory) break;
    RevisionId id(item->id);
    if (!seen.contains(id) && !mount.site().try_revision(id)) wanted.push_back(std::move(id));
  }
  op->note("history");
  return missing(fetch_revisions(mount, op, std::move(wanted)));
}

Attempt<std::vector<std::string>> branches_of(Mount& mount, const OperationPtr& op, const ProjectId& project,
                                              const RevisionId& head) {
  PLAYFS_ATTEMPT(ListPtr list, list_here(mount, op, "revisions"));
  PLAYFS_ATTEMPT(std::vector<RevisionTreePtr> line, line_of(mount, op, project, head));
  std::set<std::string> merged;
  for (const RevisionTreePtr& tree : line) merged.insert(tree->revision.id.text());
  std::vector<std::string> branches;
  for (const content::Listed* item : revisions_of(*list, project)) {
    // Older than all that was looked at: nobody knows.
    if (line.size() == kMostHistory && item->created_at < line.back()->revision.created_at) break;
    if (!merged.contains(item->id)) branches.push_back(item->id);
  }
  return branches;
}

RevisionAt revision_at(const std::vector<content::Listed>& list, const ProjectId& project, WallTime time) {
  RevisionAt at;
  at.settled = !list.empty() && list.front().created_at > time;
  for (const content::Listed& item : list) {
    if (item.project != project.text() || item.created_at > time) continue;
    at.id = item.id;
    break;
  }
  return at;
}

}  // namespace playfs::vfs
