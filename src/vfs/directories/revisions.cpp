#include "vfs/directories/revisions.h"

#include <sys/stat.h>

#include "model/path.h"
#include "vfs/directories/project.h"
#include "vfs/mount.h"
#include "vfs/published/head_fetches.h"
#include "vfs/published/history.h"
#include "vfs/published/list_fetches.h"
#include "vfs/published/revision_fetches.h"
#include "vfs/published/revision_tree.h"

namespace playfs::vfs {

void begin_fetching(Mount& mount, const RevisionId& id) {
  if (id.empty()) return;
  if (auto tree = mount.site().revision_at_once(id).tree) return mount.site().prefetch(tree);
  mount.site().revision(id, mount.gate()->closing(), [&mount, gate = mount.gate()](Result<RevisionTreePtr> tree) {
    auto ticket = gate->enter();
    if (ticket && tree) mount.site().prefetch(*tree);
  });
}

RevisionsDirectory::RevisionsDirectory(Mount& mount, NodePtr parent, std::string name, ProjectId project)
    : VirtualDirectory(mount, std::move(parent), std::move(name)), project_(std::move(project)) {}

Attempt<LookupResult> RevisionsDirectory::child(const OperationPtr& op, const std::string& name) {
  if (why_not_a_component(name) || name.size() > kMaxIdLength) return nothing(kEndless);
  PLAYFS_ATTEMPT(RevisionTreePtr revision, revision_of_project(mount(), op, RevisionId(name), project_));
  mount().site().prefetch(revision);
  return directory<RevisionDirectory>(op, name, read_only_view(mount(), std::move(revision), project_));
}

Attempt<ListedNames> RevisionsDirectory::names(const OperationPtr& op) {
  PLAYFS_ATTEMPT(ListPtr list, list_here(mount(), op, "revisions"));
  return derived_.of(list, [this](const std::vector<content::Listed>& revisions) {
    std::vector<ListedName> names;
    for (std::size_t i = revisions.size(); i > 0; --i) {
      const content::Listed& revision = revisions[i - 1];
      if (revision.project != project_.text() || why_not_a_component(revision.id)) continue;
      names.push_back({revision.id, S_IFDIR, kFirstPosition + (revisions.size() - i)});
    }
    return names;
  });
}

BranchesDirectory::BranchesDirectory(Mount& mount, NodePtr parent, std::string name, ProjectId project)
    : VirtualDirectory(mount, std::move(parent), std::move(name)), project_(std::move(project)) {}

Attempt<std::vector<std::string>> BranchesDirectory::branches(const OperationPtr& op) {
  PLAYFS_ATTEMPT(RevisionTreePtr head, shown_here(mount(), op, project_));
  return branches_of(mount(), op, project_, id_of(head));
}

Attempt<LookupResult> BranchesDirectory::child(const OperationPtr& op, const std::string& name) {
  if (why_not_a_component(name)) return nothing(kEndless);
  PLAYFS_ATTEMPT(std::vector<std::string> all, branches(op));
  if (std::find(all.begin(), all.end(), name) == all.end()) return nothing();
  PLAYFS_ATTEMPT(RevisionTreePtr revision, revision_of_project(mount(), op, RevisionId(name), project_));
  return symlink(op, name, "../revisions/" + name, revision->revision.created_at, 0);
}

Attempt<ListedNames> BranchesDirectory::names(const OperationPtr& op) {
  PLAYFS_ATTEMPT(std::vector<std::string> all, branches(op));
  std::vector<ListedName> names;
  for (auto id = all.rbegin(); id != all.rend(); ++id) {
    if (!why_not_a_component(*id)) names.push_back({*id, S_IFLNK, kFirstPosition + names.size()});
  }
  return std::make_shared<const std::vector<ListedName>>(std::move(names));
}

AtDirectory::AtDirectory(Mount& mount, NodePtr parent, std::string name, ProjectId project)
    : VirtualDirectory(mount, std::move(parent), std::move(name)), project_(std::move(project)) {}

Attempt<ListedNames> AtDirectory::names(const OperationPtr&) { return fixed_names({}); }

Attempt<LookupResult> AtDirectory::child(const OperationPtr& op, const std::string& name) {
  auto time = parse_iso8601(name, true);
  if (!time) return nothing(kEndless);
  PLAYFS_ATTEMPT(content::Head known, head_here(mount(), project_));
  RevisionAt at;
  if (known.shown) {
    PLAYFS_ATTEMPT(at, revision_at(mount(), op, project_, *known.shown, *time));
  }
  if (!at.settled) {  // head may have moved since it was seen
    PLAYFS_ATTEMPT(RevisionTreePtr head, shown_here(mount(), op, project_));
    PLAYFS_ATTEMPT(at, revision_at(mount(), op, project_, id_of(head), *time));
  }
  // Even a settled answer changes if head is set to another line.
  const double timeout = mount().refresh_seconds();
  if (!at.revision) return nothing(timeout);
  const RevisionTreePtr& revision = at.revision;
  const RevisionId id = revision->revision.id;
  mount().site().prefetch(revision);
  auto root = children().get<RevisionDirectory>(
      name, [&](const RevisionDirectory& shown) { return shown.revision() == id; },
      [&] {
        return std::make_shared<RevisionDirectory>(mount(), shared_from_this(), name,
                                                   read_only_view(mount(), revision, project_));
      });
  return found(op, root, timeout);
}

}  // namespace playfs::vfs
