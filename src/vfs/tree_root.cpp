#include "vfs/tree_root.h"

#include <set>

#include "vfs/fetches.h"
#include "vfs/mount.h"
#include "vfs/own_files.h"
#include "vfs/revision_tree.h"
#include "vfs/revisions.h"
#include "vfs/work_node.h"
#include "vfs/work_trees.h"

namespace playfs::vfs {

Attempt<NodePtr> TreeRoot::target(const OperationPtr& op) {
  NodePtr now = shown();
  if (revision_) {
    if (now) return now;
    PLAYFS_ATTEMPT(RevisionTreePtr revision, revision_of_project(mount(), *revision_, project_));
    mount().site().prefetch(revision);
    return begin(made(revision, read_only_view(revision, project_)->refusal), std::nullopt);
  }
  // Elsewhere the directory above is what sees head move.
  if (!parent()) mount().in_use().touch(project_, std::static_pointer_cast<TreeRoot>(shared_from_this()));
  if (now) return now;
  PLAYFS_ATTEMPT_CHECK(head_for_use(mount(), op, project_));
  auto tree = mount().works().here(op, project_);
  if (tree) return begin(writable(*tree), std::nullopt);
  if (tree.error().fetch) return tl::unexpected<Stop>(std::move(tree).error());
  const Error refusal = std::move(tree).error().error;
  if (refusal.code != ErrorCode::busy && refusal.code != ErrorCode::read_only) return fail(refusal);
  PLAYFS_ATTEMPT(RevisionTreePtr revision, shown_here(mount(), op, project_));
  if (revision) mount().site().prefetch(revision);
  return begin(made(revision, refusal), refusal);
}

NodePtr TreeRoot::shown() const {
  MutexLock lock(mutex_);
  return shown_;
}

NodePtr TreeRoot::made(const RevisionTreePtr& revision, const Error& refusal) {
  // By the same name: it takes this one's number.
  return std::make_shared<RevisionDirectory>(mount(), parent(), name(), view_with_refusal(revision, project_, refusal));
}

NodePtr TreeRoot::writable(const std::shared_ptr<WorkTree>& tree) {
  if (parent()) tree->set_stand_in(shared_from_this());
  return tree->root(parent(), name());
}

NodePtr TreeRoot::begin(const NodePtr& tree, const std::optional<Error>& refusal) {
  {
    MutexLock lock(mutex_);
    if (shown_) return shown_;
    shown_ = tree;
    refusal_ = refusal;
  }
  if (refusal && refusal->code == ErrorCode::busy) try_later();
  return tree;
}

void TreeRoot::try_later() {
  mount().later(mount().options().refresh, [this, weak = weak_from_this()] {
    auto self = weak.lock();
    if (!self) return;
    mount().works().try_open(project_, [this, self, gate = mount().gate()](const Status& opened) {
      auto ticket = gate->enter();
      if (!ticket) return;
      if (opened) bring_up();
      else try_later();
    });
  });
}

void TreeRoot::bring_up() {
  RevisionTreePtr come;
  if (show_known(come)) {
    if (come) mount().site().prefetch(come);
    return;
  }
  bring_shown(
      mount(), project_,
      [self = std::static_pointer_cast<TreeRoot>(shared_from_this())](const RevisionTreePtr&) { self->bring_up(); });
}

bool TreeRoot::show_known(RevisionTreePtr& come) {
  MutexLock moving(moving_);
  std::optional<Error> refusal;
  NodePtr before;
  {
    MutexLock lock(mutex_);
    refusal = refusal_;
    before = shown_;
  }
  if (!before || !refusal) return true;
  if (auto tree = mount().works().find(project_)) {
    replace(writable(tree));
    return true;
  }
  auto head = mount().site().try_head(project_);
  if (!head) return true;
  if (!head->shown) return false;
  auto now = std::dynamic_pointer_cast<RevisionDirectory>(before);
  if (now->revision() == *head->shown) return true;
  if (!head->shown->empty()) come = mount().site().try_revision(*head->shown);
  if (!come && !head->shown->empty()) return false;
  replace(made(come, *refusal));
  return true;
}

void TreeRoot::replace(const NodePtr& tree) {
  NodePtr before;
  {
    MutexLock lock(mutex_);
    before = std::exchange(shown_, tree);
    if (!std::dynamic_pointer_cast<RevisionDirectory>(tree)) refusal_.reset();
  }
  // Names of both: what goes, what comes, and what the kernel knows not to be there.
  std::set<std::string> names;
  auto internal = std::make_shared<Operation>(Caller());
  for (const NodePtr& each : {before, tree}) {
    auto listed = each->list(internal, 0, false, [&](DirectoryItem& item, const NodePtr&) {
      names.insert(item.name);
      return true;
    });
    // Neither kind of tree needs anything that is not here.
    if (!listed) mount().site().events().error(path(), listed.error().error);
  }
  const std::string& whose = project_.text();
  for (const std::string& name : names) mount().notifications().entry_changed(id(), name, whose);
  mount().notifications().node_changed(id(), 0, whose);
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
  if (name == kOwnDirectory && !parent()) {
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
