#include "vfs/node_table.h"

#include <algorithm>
#include <utility>

namespace playfs::vfs {

void NodeTable::set_root(NodePtr root) {
  MutexLock lock(mutex_);
  slots_[kRootNode] = {std::move(root), 1};
}

NodePtr NodeTable::find(NodeId id) const {
  MutexLock lock(mutex_);
  auto found = slots_.find(id);
  return found == slots_.end() ? nullptr : found->second.node;
}

void NodeTable::refer(const NodePtr& node) {
  NodePtr former;  // released after the lock, as in forget()
  MutexLock lock(mutex_);
  Slot& slot = slots_[node->id()];
  if (!slot.node || !node->is_stand_in()) former = std::exchange(slot.node, node);
  ++slot.references;
}

void NodeTable::replace(const NodePtr& node) {
  NodePtr former;
  MutexLock lock(mutex_);
  auto found = slots_.find(node->id());
  if (found != slots_.end()) former = std::exchange(found->second.node, node);
}

bool NodeTable::forget(NodeId id, std::uint64_t count) {
  if (id == kRootNode) return false;
  NodePtr last;  // released after the lock: a node's destructor may take many other locks
  MutexLock lock(mutex_);
  auto found = slots_.find(id);
  if (found == slots_.end()) return false;
  found->second.references -= std::min(count, found->second.references);
  if (found->second.references > 0) return false;
  last = std::move(found->second.node);
  slots_.erase(found);
  return true;
}

std::size_t NodeTable::size() const {
  MutexLock lock(mutex_);
  return slots_.size();
}

void NodeTable::clear() {
  std::unordered_map<NodeId, Slot> slots;
  MutexLock lock(mutex_);
  slots.swap(slots_);
}

}  // namespace playfs::vfs
