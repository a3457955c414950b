#include "vfs/directories/late_node.h"

#include <sys/stat.h>

#include <utility>

#include "vfs/attempt_driver.h"
#include "vfs/directories/virtual_directory.h"
#include "vfs/mount.h"
#include "vfs/published/file_content.h"

namespace playfs::vfs {

LateNode::LateNode(Mount& mount, std::shared_ptr<VirtualDirectory> parent, const std::string& name, mode_t type)
    : Node(mount, parent, name, mount.nodes().new_id()), directory_(std::move(parent)), type_(type) {
  directory_->awaits(name, id(), S_ISDIR(type_));
}

LateNode::~LateNode() { directory_->awaits_no_more(name(), id()); }

NodePtr LateNode::known() const {
  MutexLock lock(mutex_);
  return node_;
}

Attempt<NodePtr> LateNode::target(const OperationPtr& op) {
  if (NodePtr here = known()) return here;
  if (!S_ISDIR(type_)) op->id_for_new = id();
  PLAYFS_ATTEMPT(LookupResult found, directory_->child(op, name()));
  if (!found.node) return fail(ErrorCode::not_found, "there is no such name");
  if (found.node->id() == id()) {
    mount().nodes().replace(found.node);
    return found.node;
  }
  if (S_ISDIR(type_)) {
    // Another lookup found the directory just when this stand-in was made.
    if (op->may_be_second)
      return fail(ErrorCode::timed_out, "it came too late for this call", "it is here by now: try again");
    op->note(kRecorded);
    mount().sent_back().note(op->caller.pid);
    return fail(ErrorCode::stale, "it is here by now: look again");
  }
  directory_->awaits_no_more(name(), id());
  MutexLock lock(mutex_);
  if (!node_) node_ = found.node;
  return node_;
}

Attempt<std::shared_ptr<WorkTree>> LateNode::work_tree(const OperationPtr& op) {
  PLAYFS_ATTEMPT(NodePtr node, target(op));
  return node->work_tree(op);
}

Attempt<LookupResult> LateNode::lookup(const OperationPtr& op, const std::string& name) {
  PLAYFS_ATTEMPT(NodePtr node, target(op));
  return node->lookup(op, name);
}

Attempt<AttributesReply> LateNode::attributes(const OperationPtr& op) {
  PLAYFS_ATTEMPT(NodePtr node, target(op));
  return node->attributes(op);
}

Attempt<std::string> LateNode::read_link(const OperationPtr& op) {
  PLAYFS_ATTEMPT(NodePtr node, target(op));
  return node->read_link(op);
}

Attempt<AttributesReply> LateNode::attributes_at_once(const OperationPtr&) {
  const mode_t permissions = S_ISREG(type_) ? 0444 : 0555;
  AttributesReply reply{mount().attributes(ino(), type_ | permissions, 0, mount().started()), 0};
  show_size(reply, kUnknownSize);
  return reply;
}

}  // namespace playfs::vfs
