#include "vfs/node.h"

#include <sys/stat.h>

#include "vfs/ino.h"
#include "vfs/mount.h"

namespace playfs::vfs {
namespace {

Error not_a_directory() { return {ErrorCode::not_a_directory, "not a directory", {}, {}, 0, {}}; }

}  // namespace

Node::Node(Mount& mount, NodePtr parent, std::string name)
    : mount_(mount),
      parent_(std::move(parent)),
      name_(std::move(name)),
      id_(parent_ ? parent_->id_for(name_) : kRootNode) {}

Node::Node(Mount& mount, NodePtr parent, std::string name, NodeId id)
    : mount_(mount), parent_(std::move(parent)), name_(std::move(name)), id_(id) {}

Node::~Node() {
  if (parent_) parent_->released(name_, id_);
}

NodeId Node::id_for(const std::string&) { return mount_.nodes().new_id(); }

std::uint64_t Node::ino() const { return parent_ ? ino_below(parent_->ino(), name_) : kRootNode; }

std::string Node::path() const { return parent_ ? parent_->path_below(name_) : std::string(); }

std::string Node::path_below(const std::string& name) const {
  std::string path = this->path();
  return path.empty() ? name : path + '/' + name;
}

Error Node::refusal() const {
  return {ErrorCode::not_permitted,
          "this part of the mount is made by playfs",
          "README.md at the mount's root says where to write",
          {},
          0,
          {}};
}

Attempt<NodePtr> Node::target(const OperationPtr&) { return shared_from_this(); }

Attempt<std::shared_ptr<WorkTree>> Node::work_tree(const OperationPtr&) {
  return fail(ErrorCode::not_supported, "not inside a work tree",
              "call it on a file or directory below projects/ID/work");
}

Attempt<AttributesReply> Node::set_attributes(const OperationPtr&, const SetAttributes&) { return fail(refusal()); }
Attempt<std::string> Node::read_link(const OperationPtr&) {
  return fail(ErrorCode::invalid_argument, "not a symbolic link");
}
Attempt<void> Node::looked_up(const OperationPtr&) { return {}; }
Attempt<std::string> Node::read(const OperationPtr&, std::uint64_t, std::size_t) {
  return fail(ErrorCode::is_a_directory, "not a file");
}
Attempt<std::size_t> Node::write(const OperationPtr&, std::uint64_t, const std::string&) { return fail(refusal()); }
Attempt<void> Node::sync(const OperationPtr&) { return {}; }
Attempt<void> Node::allocate(const OperationPtr&, int, std::uint64_t, std::uint64_t) { return fail(refusal()); }

Attempt<std::uint64_t> Node::seek(const OperationPtr& op, std::uint64_t offset, int whence) {
  PLAYFS_ATTEMPT(AttributesReply here, attributes(op));
  std::uint64_t size = here.attributes.size;
  // No holes: all data, up to the end.
  if (whence != SEEK_DATA && whence != SEEK_HOLE)
    return fail(ErrorCode::invalid_argument, "seek: neither data nor hole");
  if (offset >= size) return fail(ErrorCode::no_data, "seek: past the end");
  return whence == SEEK_DATA ? offset : size;
}

Attempt<Found> Node::lookup(const OperationPtr&, const std::string&) { return fail(not_a_directory()); }
Attempt<void> Node::list(const OperationPtr&, std::uint64_t, bool, const Emit&) { return fail(not_a_directory()); }
Attempt<Found> Node::make_node(const OperationPtr&, const std::string&, mode_t, dev_t) { return fail(refusal()); }
Attempt<Found> Node::make_directory(const OperationPtr&, const std::string&, mode_t) { return fail(refusal()); }
Attempt<Found> Node::make_symlink(const OperationPtr&, const std::string&, const std::string&) {
  return fail(refusal());
}
Attempt<Found> Node::link(const OperationPtr&, const NodePtr&, const std::string&) { return fail(refusal()); }
Attempt<void> Node::unlink(const OperationPtr&, const std::string&) { return fail(refusal()); }
Attempt<void> Node::remove_directory(const OperationPtr&, const std::string&) { return fail(refusal()); }
Attempt<void> Node::rename(const OperationPtr&, const std::string&, const NodePtr&, const std::string&, unsigned) {
  return fail(refusal());
}

Attempt<std::optional<std::string>> Node::xattr(const OperationPtr&, const std::string&) {
  return std::optional<std::string>();
}

Attempt<void> Node::set_xattr(const OperationPtr&, const std::string&) { return fail(refusal()); }
Attempt<void> Node::remove_xattr(const OperationPtr&, const std::string&) { return fail(refusal()); }

bool Node::emit_dots(std::uint64_t offset, const Emit& emit) const {
  auto dot = [&](const char* name, std::uint64_t next, const Node& node) {
    DirectoryItem item;
    item.name = name;
    item.next_offset = next;
    item.entry.attributes.ino = node.ino();
    item.entry.attributes.mode = S_IFDIR;
    return emit(item, nullptr);
  };
  if (offset < 1 && !dot(".", 1, *this)) return false;
  return offset >= 2 || dot("..", 2, parent_ ? *parent_ : *this);
}

}  // namespace playfs::vfs
