#include "vfs/root.h"

#include <sys/stat.h>

#include "vfs/own_files.h"
#include "vfs/project.h"
#include "vfs/projects.h"
#include "vfs/projects_in_use.h"
#include "vfs/readme.h"
#include "vfs/records.h"
#include "vfs/revision_tree.h"
#include "vfs/revisions.h"
#include "vfs/work_node.h"
#include "vfs/work_trees.h"

namespace playfs::vfs {
namespace {

constexpr const char* kOwn = ".playfs";

}  // namespace

NodePtr make_root(Mount& mount) {
  if (mount.options().project) return std::make_shared<TreeRoot>(mount);
  return std::make_shared<RootDirectory>(mount);
}

Attempt<ListedNames> RootDirectory::names(const OperationPtr&) {
  return fixed_names({{"README.md", S_IFREG},
                      {kOwn, S_IFDIR},
                      {"projects", S_IFDIR},
                      {"threads", S_IFDIR},
                      {"agents", S_IFDIR},
                      {"mail", S_IFDIR},
                      {"spaces", S_IFDIR},
                      {"records", S_IFDIR}});
}

Attempt<Found> RootDirectory::child(const OperationPtr& op, const std::string& name) {
  if (name == "README.md") return snapshot(op, name, std::string(kReadme), mount().started(), kEndless);
  if (name == kOwn) return directory<OwnDirectory>(op, name);
  if (name == "projects") return directory<ProjectsDirectory>(op, name);
  if (name == "threads") return directory<ThreadsDirectory>(op, name);
  if (name == "agents") return directory<CollectionDirectory>(op, name, agents_view());
  if (name == "mail") return directory<CollectionDirectory>(op, name, mail_view());
  if (name == "spaces") return directory<CollectionDirectory>(op, name, spaces_view());
  if (name == "records") return directory<RecordsDirectory>(op, name);
  return nothing(kEndless);
}

Attempt<NodePtr> TreeRoot::target(const OperationPtr& op) {
  const PlaygroundOptions& options = mount().options();
  const ProjectId& project = *options.project;
  auto shown = [this](const RevisionTreePtr& revision, const TreeViewPtr& view) -> NodePtr {
    mount().site().prefetch(revision);
    const RevisionId& id = view->revision->revision.id;
    // No parent: it takes the root's own number.
    return children_.get<RevisionDirectory>(
        "", [&](const RevisionDirectory& root) { return root.revision() == id; },
        [&] { return std::make_shared<RevisionDirectory>(mount(), nullptr, std::string(), view); });
  };
  if (options.revision) {
    PLAYFS_ATTEMPT(RevisionTreePtr revision, revision_of_project(mount(), *options.revision, project));
    return shown(revision, read_only_view(revision, project));
  }
  mount().in_use().touch(project, shared_from_this());
  PLAYFS_ATTEMPT(content::Head head, head_for_use(mount(), op, project, !used_));
  used_ = true;
  auto tree = mount().works().here(op, project);
  if (tree) return NodePtr((*tree)->root(nullptr, std::string()));
  if (tree.error().fetch) return tl::unexpected<Stop>(std::move(tree).error());
  Error refusal = std::move(tree).error().error;
  if (refusal.code != ErrorCode::busy && refusal.code != ErrorCode::read_only) return fail(std::move(refusal));
  RevisionTreePtr revision;
  if (!head.project.latest_revision.empty()) {
    PLAYFS_ATTEMPT(revision, revision_here(mount(), head.project.latest_revision));
  }
  return shown(revision, view_with_refusal(revision, project, std::move(refusal)));
}

Attempt<std::shared_ptr<WorkTree>> TreeRoot::work_tree(const OperationPtr& op) {
  PLAYFS_ATTEMPT(NodePtr tree, target(op));
  return tree->work_tree(op);
}

Attempt<AttributesReply> TreeRoot::attributes(const OperationPtr& op) {
  PLAYFS_ATTEMPT(NodePtr tree, target(op));
  return tree->attributes(op);
}

Attempt<Found> TreeRoot::lookup(const OperationPtr& op, const std::string& name) {
  if (name == kOwn) {
    auto own = children_.get<OwnDirectory>(
        name, [](const OwnDirectory&) { return true; },
        [&] { return std::make_shared<OwnDirectory>(mount(), shared_from_this(), name); });
    PLAYFS_ATTEMPT(AttributesReply reply, own->attributes(op));
    return Found{own, reply, kEndless};
  }
  PLAYFS_ATTEMPT(NodePtr tree, target(op));
  return tree->lookup(op, name);
}

}  // namespace playfs::vfs
