#include "vfs/work/work_tree.h"

#include <unistd.h>

#include <set>

#include "base/log.h"
#include "vfs/attempt_fetches.h"
#include "vfs/ino.h"
#include "vfs/published/instructions.h"
#include "vfs/work/work_node.h"

namespace playfs::vfs {
namespace {

/// Beside the stage, a work tree's directory holds the journal of its publications.
std::string journal_directory(const std::string& directory) { return directory + "/publication"; }

std::optional<std::string> rules_text(content::Site& site, const FileRef& file, std::size_t most) {
  auto blob = site.try_blob(file);
  if (!blob) return std::nullopt;
  auto text = blob->read(0, most);
  return text ? std::optional(std::move(*text)) : std::nullopt;
}

}  // namespace

WorkTree::WorkTree(Mount& mount, ProjectId project, std::string directory, std::unique_ptr<stage::Stage> stage)
    : mount_(mount),
      project_(std::move(project)),
      directory_(std::move(directory)),
      root_ino_(ino_below(ino_below(ino_below(kRootNode, "projects"), project_.text()), "work")),
      stage_(std::move(stage)) {}

WorkTree::~WorkTree() {
  std::unique_ptr<publish::Publisher> last;  // calls back until it has ended, so end it after the lock is released
  MutexLock lock(mutex_);
  last = std::move(publisher_);
}

Result<std::shared_ptr<WorkTree>> WorkTree::open(Mount& mount, const ProjectId& project, const std::string& directory,
                                                 RevisionTreePtr base, std::optional<stage::Stage::Found> found) {
  const FileSystemOptions& options = mount.options();
  stage::StageOptions stage_options;
  stage_options.directory = directory;
  stage_options.uid = options.uid;
  stage_options.gid = options.gid;
  stage_options.umask = options.umask;
  stage_options.read_lower = [&site = mount.site()](const FileRef& file, std::size_t most) {
    return rules_text(site, file, most);
  };
  stage_options.tell_of_rules = [&events = mount.site().events(), scope = "projects/" + project.text() + "/work"](
                                    const Error& error) { events.error(scope, error); };
  // A clone's commands are one session: what one of them publishes, the next one shows.
  const bool is_lone = !options.follows_head;
  stage_options.instructions =
      is_lone && options.instructions == Instructions::hide ? Instructions::hide_others : options.instructions;
  PLAYFS_TRY(auto stage, stage::Stage::open(stage_options, mount.clock(), base, std::move(found)));
  if (const auto& lost = stage->found_lost())
    mount.site().events().error("projects/" + project.text() + "/work", *lost);
  std::shared_ptr<WorkTree> tree(new WorkTree(mount, project, directory, std::move(stage)));
  tree->keep_base();
  tree->note_instructions();  // the cache may have been cleared
  tree->know_instructions(base);
  PLAYFS_TRY(auto pending, tree->stage_->pending());
  if (pending || ::access(journal_directory(directory).c_str(), F_OK) == 0) PLAYFS_CHECK(tree->open_publisher());
  return tree;
}

void WorkTree::note_instructions() {
  // Anybody may have made a clone, with what is trusted in it. So one tells others only what this command publishes.
  const bool is_lone = !mount_.options().follows_head;
  mount_.site().note_instructions(mount_.options().agent,
                                  is_lone ? stage_->published_instructions() : stage_->trusted_instructions());
}

void WorkTree::know_instructions(const RevisionTreePtr& coming) {
  if (mount_.options().instructions == Instructions::hide) return;
  const auto own = own_instructions(mount_, coming);
  if (own.empty()) return;
  if (auto known = stage_->trust_instructions(own); !known)
    log_warning("instructions may be hidden at the next start: " + known.error().message);
}

Result<bool> WorkTree::has_unfinished(const std::string& directory) {
  const std::string journal = journal_directory(directory);
  if (::access(journal.c_str(), F_OK) != 0) return false;
  // Only the tree can tell what a missing journal had under way.
  if (::access((journal + "/publish.db").c_str(), F_OK) != 0) return true;
  auto opened = publish::Journal::open(journal);
  // Likewise for a damaged journal: opening the tree sets it aside.
  if (!opened && opened.error().code == ErrorCode::corrupt) return true;
  if (!opened) return fail(opened.error());
  PLAYFS_TRY(auto front, (*opened)->front());
  return front.has_value();
}

RevisionId WorkTree::base_id() const {
  RevisionTreePtr base = stage_->base();
  return id_of(base);
}

std::shared_ptr<WorkNode> WorkTree::root(const NodePtr& parent, const std::string& name) {
  stage::InodePtr inode = stage_->root();
  MutexLock lock(mutex_);
  auto& slot = nodes_[inode.get()];
  auto node = slot.lock();
  if (!node) slot = node = std::make_shared<WorkNode>(mount_, parent, name, shared_from_this(), inode);
  return node;
}

std::shared_ptr<WorkNode> WorkTree::node(const stage::InodePtr& inode, const NodePtr& parent) {
  MutexLock lock(mutex_);
  auto& slot = nodes_[inode.get()];
  auto node = slot.lock();
  if (!node) slot = node = std::make_shared<WorkNode>(mount_, parent, std::string(), shared_from_this(), inode);
  return node;
}

void WorkTree::set_stand_in(const NodePtr& node) {
  MutexLock lock(mutex_);
  stand_in_ = node;
}

NodePtr WorkTree::known_node(const stage::InodePtr& inode) const {
  const bool is_root = inode == stage_->root();
  MutexLock lock(mutex_);
  if (auto stand_in = is_root ? stand_in_.lock() : nullptr) return stand_in;
  auto found = nodes_.find(inode.get());
  return found == nodes_.end() ? nullptr : found->second.lock();
}

void WorkTree::drop(const stage::Inode* inode) {
  MutexLock lock(mutex_);
  auto found = nodes_.find(inode);
  if (found != nodes_.end() && found->second.expired()) nodes_.erase(found);
}

Status WorkTree::check_may_write(const Caller& caller) const {
  PLAYFS_TRY(stage::Attributes root, stage_->attributes(stage_->root()));
  unsigned bits = caller.uid == root.uid   ? root.permissions >> 6
                  : caller.gid == root.gid ? root.permissions >> 3
                                           : root.permissions;
  if (caller.uid == 0 || (bits & 2)) return {};
  return fail(ErrorCode::permission_denied, "no permission to write in the work tree");
}

Status WorkTree::open_publisher() {
  MutexLock opening(opening_);
  if (publisher()) return {};
  // Head may contain more than what was published here, such as a merge, and may have been seen before the base
  // arrived.
  auto settled = [this](const std::vector<stage::Invalidation>& changed) {
    tell_kernel(changed);
    follow_head();
  };
  publish::PublisherOptions options;
  options.agent = mount_.options().agent;
  options.reconciles = mount_.options().follows_head;
  options.may_go_on = mount_.options().may_go_on;
  // Before anyone can see the revision: its trees are cached as they are first shown.
  options.frozen = [this] { note_instructions(); };
  PLAYFS_TRY(auto opened,
             publish::Publisher::open(journal_directory(directory_), project_, mount_.site(), *stage_,
                                      mount_.executor(), mount_.clock(), mount_.random(), settled, options));
  MutexLock lock(mutex_);
  publisher_ = std::move(opened);
  return {};
}

publish::Publisher* WorkTree::publisher() const {
  MutexLock lock(mutex_);
  return publisher_.get();
}

bool WorkTree::is_on_branch() const {
  publish::Publisher* publishing = publisher();
  return publishing && publishing->branch().has_value();
}

Async<publish::Publisher*> WorkTree::opened_publisher() {
  if (!publisher()) {
    PLAYFS_AWAIT_CHECK(on_disk(mount_, [self = shared_from_this()] { return self->open_publisher(); }));
  }
  co_return publisher();
}

void WorkTree::keep_base() {
  const RevisionId base = base_id();
  {
    MutexLock lock(mutex_);
    if (std::exchange(kept_, base) == base) return;
  }
  mount_.site().keep(directory_, base);
}

Async<void> WorkTree::tell(OperationPtr op, std::string what) {
  PLAYFS_AWAIT_CHECK(until_kernel_knows(mount_, op, project_, "told"));
  if (!op->noted(kUntold)) co_return Status();
  co_return fail(ErrorCode::timed_out,
                 what + ", but the tree may still show old names: a kernel operation is waiting for the service",
                 "look again when that operation has ended");
}

void WorkTree::tell_kernel(const std::vector<stage::Invalidation>& changed) {
  keep_base();  // the base may have moved
  std::set<NodeId> directories;
  auto known = [&](const stage::InodePtr& inode) -> std::optional<NodeId> {
    NodePtr node = inode ? known_node(inode) : nullptr;
    return node && mount_.nodes().find(node->id()) ? std::optional(node->id()) : std::nullopt;
  };
  for (const stage::Invalidation& one : changed) {
    // A file that loses a name changes its link count wherever it is known: under another name, or as an open file.
    if (auto before = known(one.before)) mount_.notifications().node_changed(*before, -1, project_.text());
    auto directory = known(one.directory);
    if (!directory) continue;
    mount_.notifications().entry_changed(*directory, one.name, project_.text());
    directories.insert(*directory);
  }
  for (NodeId directory : directories) mount_.notifications().node_changed(directory, 0, project_.text());
}

}  // namespace playfs::vfs
