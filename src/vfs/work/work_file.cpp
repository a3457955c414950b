#include <sys/stat.h>

#include "model/path.h"
#include "vfs/attempt_fetches.h"
#include "vfs/ino.h"
#include "vfs/published/instructions.h"
#include "vfs/published/revision_tree.h"
#include "vfs/work/work_node.h"

namespace playfs::vfs {
namespace {

constexpr unsigned kSetUid = 04000, kSetGid = 02000, kGroupExecute = 0010;

mode_t type_of(stage::Kind kind) {
  switch (kind) {
    case stage::Kind::file: return S_IFREG;
    case stage::Kind::directory: return S_IFDIR;
    case stage::Kind::symlink: return S_IFLNK;
    case stage::Kind::fifo: return S_IFIFO;
    case stage::Kind::socket: return S_IFSOCK;
    case stage::Kind::character_device: return S_IFCHR;
    case stage::Kind::block_device: return S_IFBLK;
  }
  return S_IFREG;
}

/// Without group execute, set-gid means mandatory locking, not a privilege.
unsigned without_set_id(unsigned permissions) {
  permissions &= ~kSetUid;
  return permissions & kGroupExecute ? permissions & ~kSetGid : permissions;
}

}  // namespace

WorkNode::WorkNode(Mount& mount, NodePtr parent, std::string name, std::shared_ptr<WorkTree> tree,
                   stage::InodePtr inode)
    : Node(mount, std::move(parent), std::move(name)), tree_(std::move(tree)), inode_(std::move(inode)) {}

WorkNode::~WorkNode() { tree_->drop(inode_.get()); }

std::uint64_t WorkNode::ino_of(const stage::InodePtr& inode, std::uint64_t ino) const {
  return inode == stage().root() ? tree_->root_ino() : ino_in_work(tree_->root_ino(), ino);
}

std::uint64_t WorkNode::ino() const {
  auto attributes = stage().attributes(inode_);
  return attributes ? ino_of(inode_, attributes->ino) : 0;
}

std::optional<std::string> WorkNode::path_in_work() const { return stage().path_of(inode_); }

std::string WorkNode::path() const {
  std::string path = mount().options().project ? std::string() : "projects/" + tree_->project().text() + "/work";
  auto inside = path_in_work();
  if (inside && inside->empty()) return path;
  if (!path.empty()) path += '/';
  return path + inside.value_or("(a file without a name)");
}

Attempt<std::shared_ptr<WorkTree>> WorkNode::work_tree(const OperationPtr&) { return tree_; }

NodeAttributes WorkNode::shown(const stage::Attributes& from) const {
  NodeAttributes attributes;
  attributes.ino = ino_of(inode_, from.ino);
  attributes.mode = type_of(from.kind) | from.permissions;
  attributes.links = from.links;
  attributes.uid = from.uid;
  attributes.gid = from.gid;
  attributes.size = from.size;
  attributes.blocks = from.blocks;
  attributes.device = from.device;
  attributes.atime = from.atime;
  attributes.mtime = from.mtime;
  attributes.ctime = from.ctime;
  return attributes;
}

template <class Size>
Attempt<AttributesReply> WorkNode::attributes_with(Size size_below) {
  for (;;) {
    PLAYFS_ATTEMPT(stage::Attributes from, stage().attributes(inode_));
    may_be_set_id_ = (from.permissions & (kSetUid | kSetGid)) != 0;
    AttributesReply reply{shown(from), kEndless};
    if (from.is_below) {
      auto lower = stage().lower_content(inode_);
      if (!lower) continue;  // copied up in between
      PLAYFS_ATTEMPT(std::uint64_t size, size_below(*lower));
      show_size(reply, size);
    }
    return reply;
  }
}

Attempt<AttributesReply> WorkNode::attributes(const OperationPtr& op) {
  return attributes_with([&](const FileRef& lower) { return size_.tell(op, mount(), lower); });
}

Attempt<AttributesReply> WorkNode::attributes_at_once(const OperationPtr&) {
  return attributes_with(
      [&](const FileRef& lower) { return Attempt<std::uint64_t>(size_.tell_at_once(mount(), lower)); });
}

Attempt<AttributesReply> WorkNode::set_attributes(const OperationPtr& op, const SetAttributes& change) {
  if (change.size && *change.size > 0) PLAYFS_ATTEMPT_CHECK(bring_up());
  PLAYFS_ATTEMPT(stage::Attributes now, stage().attributes(inode_));
  if (change.size && now.kind != stage::Kind::file) {
    return fail(now.kind == stage::Kind::directory ? ErrorCode::is_a_directory : ErrorCode::invalid_argument,
                "not a file");
  }
  stage::AttributeChange wanted;
  if (change.mode) wanted.permissions = *change.mode & 07777;
  wanted.uid = change.uid;
  wanted.gid = change.gid;
  wanted.size = change.size;
  wanted.atime = change.atime;
  wanted.mtime = change.mtime;
  bool given_away = change.uid || change.gid;
  // A no-op chown(2), which strips set-id bits like any other. The kernel also sends one before a non-owner's write.
  bool nothing_given = !change.mode && !given_away && !change.size && !change.atime && !change.mtime;
  if (nothing_given) wanted.permissions = now.permissions;
  bool by_owner = (given_away || nothing_given) && now.kind != stage::Kind::directory;
  if (!change.mode && (by_owner || (change.size && op->caller.uid != 0))) {
    unsigned stripped = without_set_id(now.permissions);
    if (stripped != now.permissions) wanted.permissions = stripped;
  }
  may_be_set_id_ = true;
  PLAYFS_ATTEMPT(stage::Attributes after, changed_attributes(op, wanted));
  if (!after.is_below) size_.forget();
  // Use the size in the result: a publication that completes, or a copy-up, may come between any two calls. A wrong
  // size of 0 would make the kernel write the next O_APPEND over the beginning.
  if (after.is_below) return attributes_at_once(op);
  return AttributesReply{shown(after), kEndless};
}

Attempt<stage::Attributes> WorkNode::changed_attributes(const OperationPtr& op, const stage::AttributeChange& change) {
  return without_waiting<stage::Attributes>(
      op, [this, change]() -> Result<stage::Attributes> { return stage().set_attributes(inode_, change); });
}

Attempt<std::string> WorkNode::link_target() {
  std::string to;
  if (auto lower = stage().lower_content(inode_)) {
    PLAYFS_ATTEMPT(to, size_.read(*this, mount(), *lower, 0, kMaxPathLength + 1));
  } else {
    PLAYFS_ATTEMPT(to, or_again(stage().symlink_target(inode_)));
  }
  // Check the target whoever created the link, since merges bring links too, and from each of its paths, since a moved
  // link leads elsewhere.
  for (const std::string& path : stage().paths_of(inode_)) PLAYFS_ATTEMPT_CHECK(check_link_target(mount(), path, to));
  return to;
}

Attempt<std::string> WorkNode::read_link(const OperationPtr& op) {
  return mount().late_links().read(op, id(), link_target());
}

Attempt<void> WorkNode::looked_up(const OperationPtr& op) {
  if (!mount().late_links().is_awaited(op, id())) return {};
  return mount().late_links().wait(op, id(), link_target());
}

Attempt<std::string> WorkNode::read(const OperationPtr&, std::uint64_t offset, std::size_t size) {
  if (auto lower = stage().lower_content(inode_)) return size_.read(*this, mount(), *lower, offset, size);
  return or_again(stage().read(inode_, offset, size));
}

Attempt<void> WorkNode::bring_up() {
  auto lower = stage().lower_content(inode_);
  if (!lower) {
    size_.forget();
    return {};
  }
  PLAYFS_ATTEMPT(content::Blob blob, size_.blob(*this, mount(), *lower));
  auto copy = [tree = tree_, inode = inode_, from = *lower, blob]() -> Status {
    Status status = tree->stage().copy_up(inode, from, blob.size(), [&blob](int fd) { return blob.copy_to(fd); });
    // The local copy is damaged. It is set aside now, so the next attempt refetches it.
    if (!status && status.error().code == ErrorCode::corrupt) return {};
    return status;
  };
  // On the disk threads even for small files: copy-up syncs.
  return missing(on_disk(mount(), copy));
}

Attempt<void> WorkNode::strip_set_id(const OperationPtr& op) {
  static constexpr const char* kModeTold = "mode told";
  if (!may_be_set_id_ || op->caller.uid == 0 || op->noted(kModeTold)) return {};
  PLAYFS_ATTEMPT(stage::Attributes now, stage().attributes(inode_));
  unsigned stripped = without_set_id(now.permissions);
  const bool is_done = op->outcome<Result<stage::Attributes>>().has_value();
  bool loses_some = is_done || stripped != now.permissions;
  if (loses_some) {
    stage::AttributeChange change;
    change.permissions = stripped;
    PLAYFS_ATTEMPT(now, changed_attributes(op, change));
  }
  may_be_set_id_ = (now.permissions & (kSetUid | kSetGid)) != 0;
  if (!loses_some) return {};
  // The reply to a write carries no attributes, so the kernel would assume an unchanged mode.
  mount().notifications().node_changed(id(), -1);
  return missing(until_kernel_knows(mount(), op, id(), kModeTold));
}

Attempt<std::size_t> WorkNode::write(const OperationPtr& op, std::uint64_t offset, const std::string& data) {
  PLAYFS_ATTEMPT_CHECK(bring_up());
  PLAYFS_ATTEMPT_CHECK(strip_set_id(op));
  return without_waiting<std::size_t>(
      op, [this, offset, data]() -> Result<std::size_t> { return stage().write(inode_, offset, data); });
}

Attempt<void> WorkNode::sync(const OperationPtr& op) {
  if (op->noted("synced")) return {};
  return missing(on_disk(mount(), [tree = tree_, inode = inode_, op]() -> Status {
    PLAYFS_CHECK(tree->stage().sync(inode));
    op->note("synced");
    return {};
  }));
}

Attempt<void> WorkNode::allocate(const OperationPtr& op, int mode, std::uint64_t offset, std::uint64_t length) {
  PLAYFS_ATTEMPT_CHECK(bring_up());
  PLAYFS_ATTEMPT_CHECK(strip_set_id(op));
  return without_waiting<void>(
      op, [this, mode, offset, length]() -> Status { return stage().allocate(inode_, mode, offset, length); });
}

Attempt<std::uint64_t> WorkNode::seek(const OperationPtr& op, std::uint64_t offset, int whence) {
  if (stage().lower_content(inode_)) return Node::seek(op, offset, whence);
  return or_again(stage().seek(inode_, offset, whence));
}

Attempt<std::optional<std::string>> WorkNode::xattr(const OperationPtr& op, const std::string& name) {
  auto path = path_in_work();
  if (name == "staged") {
    if (!path) return std::optional<std::string>();
    PLAYFS_ATTEMPT(std::string word, tree_->staged_word(op, *path));
    return std::optional(std::move(word));
  }
  if (auto lower = stage().lower_content(inode_))
    return published_xattr(*lower->revision, tree_->project(), lower->entry, name);
  RevisionTreePtr base = stage().base();
  if (base && name == "refused") return std::optional(refused_text(base->tree.manifest(), stage().hidden()));
  if (base) return published_xattr(*base, tree_->project(), nullptr, name);
  return name == "project" ? std::optional(tree_->project().text()) : std::nullopt;
}

Attempt<void> WorkNode::set_xattr(const OperationPtr&, const std::string& name) {
  if (name.starts_with(kXattrPrefix)) return fail(ErrorCode::not_permitted, "user.playfs.* attributes are read-only");
  return fail(ErrorCode::not_supported, "revisions cannot store extended attributes");
}

Attempt<void> WorkNode::remove_xattr(const OperationPtr&, const std::string& name) {
  if (name.starts_with(kXattrPrefix)) return fail(ErrorCode::not_permitted, "user.playfs.* attributes are read-only");
  return fail(ErrorCode::no_attribute, "no such attribute");
}

}  // namespace playfs::vfs
