#include "vfs/late_node.h"

#include <sys/stat.h>

#include <utility>

#include "vfs/drive.h"
#include "vfs/fetches.h"
#include "vfs/mount.h"
#include "vfs/virtual_directory.h"

namespace playfs::vfs {
namespace {

/// Whoever waited looks again at once; anything later gets a fresh lookup.
constexpr std::chrono::seconds kFresh{5};

}  // namespace

LateNode::LateNode(Mount& mount, std::shared_ptr<VirtualDirectory> parent, const std::string& name, mode_t type)
    : Node(mount, parent, name), directory_(std::move(parent)), type_(type) {}

Stop LateNode::until_here(const OperationPtr& op) {
  auto found = directory_->child(op, name());
  if (!found) return std::move(found).error();
  if (!found->node) return Error{ErrorCode::not_found, "there is no such name", {}, {}, 0, {}};
  {
    MutexLock lock(mutex_);
    arrived_ = Arrival{std::move(*found), mount().clock().steady()};
  }
  op->note(kRecorded);
  mount().sent_back().note(op->caller.pid);
  return Error{ErrorCode::stale, "it is here by now: look again", {}, {}, 0, {}};
}

Attempt<std::string> LateNode::read_link(const OperationPtr& op) {
  return mount().late_links().read(op, id(), tl::unexpected<Stop>(until_here(op)));
}

std::optional<Found> LateNode::take() {
  std::optional<Arrival> arrived;  // may hold the last reference; destroyed after the lock is released
  {
    MutexLock lock(mutex_);
    arrived.swap(arrived_);
  }
  if (!arrived || mount().clock().steady() - arrived->at > kFresh) return std::nullopt;
  return std::move(arrived->found);
}

Attempt<NodePtr> LateNode::target(const OperationPtr& op) { return tl::unexpected<Stop>(until_here(op)); }

Attempt<Found> LateNode::lookup(const OperationPtr& op, const std::string&) {
  return tl::unexpected<Stop>(until_here(op));
}

Attempt<AttributesReply> LateNode::attributes(const OperationPtr& op) { return tl::unexpected<Stop>(until_here(op)); }

Attempt<AttributesReply> LateNode::attributes_at_once(const OperationPtr&) {
  const mode_t permissions = S_ISREG(type_) ? 0444 : 0555;
  AttributesReply reply{mount().attributes(ino(), type_ | permissions, 0, mount().started()), 0};
  show_size(reply, kUnknownSize);
  return reply;
}

}  // namespace playfs::vfs
