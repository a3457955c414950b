#include <sys/stat.h>

#include "base/text.h"
#include "model/path.h"
#include "vfs/ino.h"
#include "vfs/mount.h"
#include "vfs/work/work_node.h"

#ifndef RENAME_NOREPLACE
#include <linux/fs.h>
#endif

namespace playfs::vfs {
namespace {

constexpr std::size_t kListedAtOnce = 128;
/// "." and ".." come before the stage's cookies.
constexpr std::uint64_t kDots = 2;

Status check_length(const std::string& name) {
  if (name.size() > kMaxComponentLength) return fail(ErrorCode::name_too_long, "the name is longer than 255 bytes");
  return {};
}

/// Refuses names that no revision can hold when they are created, not at the commit.
Status check_new_name(const std::string& name) {
  PLAYFS_CHECK(check_length(name));
  if (!is_valid_utf8(name)) return fail(ErrorCode::invalid_argument, "file names must be UTF-8");
  return {};
}

Result<stage::Kind> special_kind(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFIFO: return stage::Kind::fifo;
    case S_IFSOCK: return stage::Kind::socket;
    case S_IFCHR: return stage::Kind::character_device;
    case S_IFBLK: return stage::Kind::block_device;
    default: return fail(ErrorCode::invalid_argument, "this type of file cannot be created");
  }
}

}  // namespace

Result<stage::Creation> WorkNode::creation(const Caller& caller, mode_t mode, bool directory) const {
  PLAYFS_TRY(stage::Attributes here, stage().attributes(inode_));
  stage::Creation creation{static_cast<unsigned>(mode & 07777), caller.uid, caller.gid};
  if (here.permissions & S_ISGID) {
    creation.gid = here.gid;
    if (directory) creation.permissions |= S_ISGID;
  }
  return creation;
}

bool WorkNode::is_hidden(std::string_view name) const {
  return name == kOwnDirectory && mount().options().project && inode_ == stage().root();
}

Attempt<LookupResult> WorkNode::found(const OperationPtr& op, const stage::InodePtr& inode) {
  NodePtr node = tree_->node(inode, shared_from_this());
  PLAYFS_ATTEMPT_CHECK(node->looked_up(op));
  PLAYFS_ATTEMPT(AttributesReply reply, node->attributes_at_once(op));
  return LookupResult{node, reply, kEndless};
}

Attempt<LookupResult> WorkNode::lookup(const OperationPtr& op, const std::string& name) {
  PLAYFS_ATTEMPT_CHECK(check_length(name));
  auto inode = stage().lookup(inode_, name);
  if (inode) return found(op, *inode);
  if (inode.error().code == ErrorCode::not_found) return LookupResult{nullptr, {}, kEndless};
  return fail(std::move(inode).error());
}

std::uint64_t WorkNode::parent_ino() const {
  auto path = path_in_work();
  if (!path || path->empty()) return parent() ? parent()->ino() : ino();
  stage::InodePtr above = stage().root();
  for (std::size_t begin = 0, end; (end = path->find('/', begin)) != std::string::npos; begin = end + 1) {
    auto next = stage().lookup(above, std::string_view(*path).substr(begin, end - begin));
    if (!next) return ino();  // moved during the walk
    above = std::move(*next);
  }
  auto attributes = stage().attributes(above);
  return attributes ? ino_of(above, attributes->ino) : ino();
}

Attempt<void> WorkNode::list(const OperationPtr& op, std::uint64_t offset, bool with_entries, const Emit& emit) {
  std::uint64_t after = offset < kDots ? 0 : offset - kDots;
  PLAYFS_ATTEMPT(auto entries, stage().list(inode_, after, kListedAtOnce));
  auto dot = [&](const char* name, std::uint64_t next, std::uint64_t ino) {
    DirectoryItem item;
    item.name = name;
    item.next_offset = next;
    item.entry.attributes.ino = ino;
    item.entry.attributes.mode = S_IFDIR;
    return emit(item, nullptr);
  };
  if (offset < 1 && !dot(".", 1, ino())) return {};
  if (offset < 2 && !dot("..", 2, parent_ino())) return {};
  while (!entries.empty()) {
    for (const stage::DirectoryEntry& entry : entries) {
      after = entry.cookie;
      if (is_hidden(entry.name)) continue;
      auto node = tree_->node(entry.inode, shared_from_this());
      auto from = stage().attributes(entry.inode);
      if (!from) continue;
      DirectoryItem item;
      item.name = entry.name;
      item.next_offset = entry.cookie + kDots;
      item.entry.attributes = node->shown(*from);
      NodePtr with;
      if (with_entries) {
        if (auto reply = node->attributes_at_once(op)) {
          item.entry = {node->id(), reply->attributes, kEndless, reply->timeout};
          with = node;
        }
      }
      if (!emit(item, with)) return {};
    }
    auto more = stage().list(inode_, after, kListedAtOnce);
    if (!more) break;  // what was emitted stands; the next call returns the error
    entries = std::move(*more);
  }
  return {};
}

Attempt<LookupResult> WorkNode::make_node(const OperationPtr& op, const std::string& name, mode_t mode, dev_t device) {
  PLAYFS_ATTEMPT_CHECK(check_new_name(name));
  PLAYFS_ATTEMPT(stage::Creation how, creation(op->caller, mode, false));
  if (S_ISREG(mode) || (mode & S_IFMT) == 0) {
    PLAYFS_ATTEMPT(stage::InodePtr inode, without_waiting<stage::InodePtr>(
                                              op, [this, name, how] { return stage().make_file(inode_, name, how); }));
    return found(op, inode);
  }
  PLAYFS_ATTEMPT(stage::Kind kind, special_kind(mode));
  PLAYFS_ATTEMPT(stage::InodePtr inode, without_waiting<stage::InodePtr>(op, [this, name, kind, how, device] {
                   return stage().make_special(inode_, name, kind, how, device);
                 }));
  return found(op, inode);
}

Attempt<LookupResult> WorkNode::make_directory(const OperationPtr& op, const std::string& name, mode_t mode) {
  PLAYFS_ATTEMPT_CHECK(check_new_name(name));
  PLAYFS_ATTEMPT(stage::Creation how, creation(op->caller, mode, true));
  PLAYFS_ATTEMPT(stage::InodePtr inode, without_waiting<stage::InodePtr>(op, [this, name, how] {
                   return stage().make_directory(inode_, name, how);
                 }));
  return found(op, inode);
}

Attempt<LookupResult> WorkNode::make_symlink(const OperationPtr& op, const std::string& name,
                                             const std::string& target) {
  PLAYFS_ATTEMPT_CHECK(check_new_name(name));
  PLAYFS_ATTEMPT(stage::Creation how, creation(op->caller, 0777, false));
  PLAYFS_ATTEMPT(stage::InodePtr inode, without_waiting<stage::InodePtr>(op, [this, name, target, how] {
                   return stage().make_symlink(inode_, name, target, how);
                 }));
  return found(op, inode);
}

Attempt<LookupResult> WorkNode::link(const OperationPtr& op, const NodePtr& node, const std::string& name) {
  PLAYFS_ATTEMPT_CHECK(check_new_name(name));
  auto other = std::dynamic_pointer_cast<WorkNode>(node);
  if (!other || other->tree_ != tree_) return fail(ErrorCode::cross_device, "cannot link across work trees");
  PLAYFS_ATTEMPT_CHECK(
      without_waiting<void>(op, [this, other, name] { return stage().link(other->inode_, inode_, name); }));
  return found(op, other->inode_);
}

Attempt<void> WorkNode::unlink(const OperationPtr& op, const std::string& name) {
  return without_waiting<void>(op, [this, name] { return stage().unlink(inode_, name); });
}

Attempt<void> WorkNode::remove_directory(const OperationPtr& op, const std::string& name) {
  return without_waiting<void>(op, [this, name] { return stage().remove_directory(inode_, name); });
}

Attempt<void> WorkNode::rename(const OperationPtr& op, const std::string& name, const NodePtr& new_parent,
                               const std::string& new_name, unsigned flags) {
  PLAYFS_ATTEMPT_CHECK(check_new_name(new_name));
  auto to = std::dynamic_pointer_cast<WorkNode>(new_parent);
  if (!to || to->tree_ != tree_) return fail(ErrorCode::cross_device, "cannot rename across work trees");
  if (is_hidden(name) || to->is_hidden(new_name))
    return fail(ErrorCode::not_permitted, "reserved for the mount's own files: " + std::string(kOwnDirectory));
  stage::RenameMode mode = stage::RenameMode::replace;
  if (flags == RENAME_NOREPLACE) mode = stage::RenameMode::no_replace;
  else if (flags == RENAME_EXCHANGE) mode = stage::RenameMode::exchange;
  else if (flags != 0) return fail(ErrorCode::invalid_argument, "unknown rename flags");
  return without_waiting<void>(
      op, [this, name, to, new_name, mode] { return stage().rename(inode_, name, to->inode_, new_name, mode); });
}

}  // namespace playfs::vfs
