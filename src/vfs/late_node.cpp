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

Attempt<Found> LateNode::child(const OperationPtr& op) {
  auto found = directory_->child(op, name());
  if (found && !found->node) return fail(ErrorCode::not_found, "there is no such name");
  return found;
}

Stop LateNode::until_here(const OperationPtr& op) {
  auto found = child(op);
  if (!found) return std::move(found).error();
  if (!mount().sent_back().is_known(op->caller.pid)) return send_back(op, std::move(*found));
  mount().sent_back().forget(op->caller.pid);
  return Error{
      ErrorCode::timed_out, "the response arrived too late for this call", "try again: it has arrived", {}, 0, {}};
}

Stop LateNode::send_back(const OperationPtr& op, Found found) {
  std::map<pid_t, Arrival> old;  // may be the last to hold nodes: not under the lock
  {
    const SteadyTime now = mount().clock().steady();
    MutexLock lock(mutex_);
    for (auto each = arrived_.begin(); each != arrived_.end();) {
      auto here = each++;
      if (here->first == op->caller.pid || now - here->second.at > kFresh) old.insert(arrived_.extract(here));
    }
    arrived_.emplace(op->caller.pid, Arrival{std::move(found), now});
  }
  op->note(kRecorded);
  mount().sent_back().note(op->caller.pid);
  return Error{ErrorCode::stale, "it has arrived: look it up again", {}, {}, 0, {}};
}

Attempt<std::string> LateNode::read_link(const OperationPtr& op) {
  auto found = child(op);
  if (!found) return mount().late_links().read(op, id(), tl::unexpected<Stop>(std::move(found).error()));
  const bool is_sent_back = !mount().sent_back().is_known(op->caller.pid);
  if (!is_sent_back) was_read_ = true;
  auto target = is_sent_back ? Attempt<std::string>(tl::unexpected<Stop>(send_back(op, std::move(*found))))
                             : found->node->read_link(op);
  return mount().late_links().read(op, id(), std::move(target));
}

std::optional<Found> LateNode::take(pid_t thread) {
  std::map<pid_t, Arrival>::node_type arrived;  // may hold the last reference; destroyed after the lock is released
  {
    MutexLock lock(mutex_);
    arrived = arrived_.extract(thread);
  }
  if (!arrived || mount().clock().steady() - arrived.mapped().at > kFresh) return std::nullopt;
  return std::move(arrived.mapped().found);
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
