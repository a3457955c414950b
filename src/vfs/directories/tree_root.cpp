#include "vfs/directories/tree_root.h"

#include <sys/stat.h>

#include <set>

#include "vfs/attempt_fetches.h"
#include "vfs/directories/own_files.h"
#include "vfs/mount.h"
#include "vfs/published/head_fetches.h"
#include "vfs/published/revision_fetches.h"
#include "vfs/published/revision_tree.h"
#include "vfs/work/work_node.h"
#include "vfs/work/work_trees.h"

namespace playfs::vfs {
namespace {

/// How long the root's attributes wait for the tree; after such a wait was in vain, nobody waits again for as long.
constexpr std::chrono::seconds kTreePatience{3};
constexpr std::chrono::seconds kLookAgain{10};
/// How long the request continues after that, for later readers of the tree.
constexpr std::chrono::minutes kTreeGoesOn{1};
constexpr const char* kNoTree = "no tree";

/// The mount's root always exists: readdir(3) would take "not found" for the end of an empty directory.
Error not_absent(Error error) {
  if (error.code != ErrorCode::not_found) return error;
  error.code = ErrorCode::io;
  if (error.hint.empty()) error.hint = "check the project id and the site that were mounted";
  return error;
}

NoValue not_absent(NoValue stop) {
  if (!stop.fetch) return not_absent(std::move(stop.error));
  return NoValue([fetch = std::move(stop.fetch)](CancelToken cancel, Callback<void> done) mutable {
    fetch(std::move(cancel), [done = std::move(done)](Status came) mutable {
      done(came ? Status() : Status(fail(not_absent(std::move(came).error()))));
    });
  });
}

}  // namespace

Attempt<NodePtr> TreeRoot::target(const OperationPtr& op) {
  auto found = tree(op);
  if (found || parent()) return found;
  return tl::unexpected<NoValue>(not_absent(std::move(found).error()));
}

Attempt<NodePtr> TreeRoot::tree(const OperationPtr& op) {
  NodePtr now = shown();
  if (revision_) {
    if (now) return now;
    PLAYFS_ATTEMPT(RevisionTreePtr revision, revision_of_project(mount(), op, *revision_, project_));
    mount().site().prefetch(revision);
    return begin(made(revision, read_only_view(mount(), revision, project_)->refusal), std::nullopt);
  }
  // For `work/`, the directory above sees head move.
  if (!parent()) mount().in_use().touch(project_, std::static_pointer_cast<TreeRoot>(shared_from_this()));
  if (now) return now;
  PLAYFS_ATTEMPT_CHECK(head_for_use(mount(), op, project_));
  auto tree = mount().works().here(op, project_);
  if (tree) return begin(writable(*tree), std::nullopt);
  if (tree.error().fetch) return tl::unexpected<NoValue>(std::move(tree).error());
  const Error refusal = std::move(tree).error().error;
  if (!shows_head_instead(refusal)) return fail(refusal);
  PLAYFS_ATTEMPT(RevisionTreePtr revision, shown_here(mount(), op, project_));
  if (revision) mount().site().prefetch(revision);
  return begin(made(revision, refusal), refusal);
}

NodePtr TreeRoot::shown() const {
  MutexLock lock(mutex_);
  return shown_;
}

NodePtr TreeRoot::made(const RevisionTreePtr& revision, const Error& refusal) {
  // With the same name and parent, hence the same inode number.
  return std::make_shared<RevisionDirectory>(mount(), parent(), name(),
                                             view_with_refusal(mount(), revision, project_, refusal));
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
  // The names of both trees: those that disappear, and those that appear, which the kernel may have cached as absent.
  std::set<std::string> names;
  auto internal = std::make_shared<Operation>(Caller());
  for (const NodePtr& each : {before, tree}) {
    auto listed = each->list(internal, 0, false, [&](DirectoryItem& item, const NodePtr&) {
      names.insert(item.name);
      return true;
    });
    // Listing either kind of tree needs no fetch.
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
  auto reply = attributes_of_tree(op);
  if (reply || parent()) return reply;
  // `.playfs/`, which says what is wrong with the tree, is reachable only through this directory.
  return attributes_without_tree(op, std::move(reply).error());
}

Attempt<AttributesReply> TreeRoot::attributes_of_tree(const OperationPtr& op) {
  PLAYFS_ATTEMPT(NodePtr tree, target(op));
  return tree->attributes(op);
}

Attempt<AttributesReply> TreeRoot::attributes_without_tree(const OperationPtr& op, NoValue stop) {
  const AttributesReply bare{mount().attributes(ino(), S_IFDIR | 0755, 0, mount().started()), 0};
  const SteadyTime now = mount().clock().steady();
  {
    MutexLock lock(mutex_);
    if (now < look_again_) return bare;
    if (!stop.fetch || op->noted(kNoTree)) look_again_ = now + kLookAgain;
  }
  if (stop.fetch && !op->noted(kNoTree)) {
    auto or_not = [op, fetch = std::move(stop.fetch)](CancelToken cancel, Callback<void> done) mutable {
      fetch(std::move(cancel), [op, done = std::move(done)](Status came) mutable {
        if (!came && came.error().code != ErrorCode::interrupted) {
          op->set_outcome(std::move(came).error());
          op->note(kNoTree);
          came = {};
        }
        done(std::move(came));
      });
    };
    return missing(fetch_for_a_while(mount(), op, kTreePatience, kTreeGoesOn, kNoTree, std::move(or_not)));
  }
  Error why = std::move(stop.error);
  if (stop.fetch)
    why = op->outcome<Error>().value_or(
        Error{ErrorCode::timed_out, "the tree has not arrived yet", "try again: it is still being fetched"});
  mount().site().events().error(path(), why);
  return bare;
}

Attempt<LookupResult> TreeRoot::lookup(const OperationPtr& op, const std::string& name) {
  if (name == kOwnDirectory && !parent()) {
    auto own = children_.get<OwnDirectory>(
        name, [](const OwnDirectory&) { return true; },
        [&] { return std::make_shared<OwnDirectory>(mount(), shared_from_this(), name); });
    PLAYFS_ATTEMPT(AttributesReply reply, own->attributes(op));
    return LookupResult{own, reply, kEndless};
  }
  PLAYFS_ATTEMPT(NodePtr tree, target(op));
  return tree->lookup(op, name);
}

}  // namespace playfs::vfs
