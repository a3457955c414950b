// The kernel's references: which node an id stands for, and how often the kernel has looked it up. Thread-safe.
#pragma once

#include <atomic>
#include <unordered_map>

#include "base/mutex.h"
#include "vfs/node.h"

namespace playfs::vfs {

class NodeTable {
 public:
  /// An id for a node other than the root.
  [[nodiscard]] NodeId new_id() { return next_.fetch_add(1, std::memory_order_relaxed); }

  /// Keeps the root until clear().
  void set_root(NodePtr root) PLAYFS_EXCLUDES(mutex_);
  /// nullptr if the kernel holds no reference to such a node.
  [[nodiscard]] NodePtr find(NodeId id) const PLAYFS_EXCLUDES(mutex_);
  /// Adds one kernel reference. A node that took over a stand-in's id replaces it.
  void refer(const NodePtr& node) PLAYFS_EXCLUDES(mutex_);
  /// Puts `node` in the place of the stand-in whose id it has taken over, if the kernel still refers to that.
  void replace(const NodePtr& node) PLAYFS_EXCLUDES(mutex_);
  /// Returns true if that was the last reference and the node was released.
  bool forget(NodeId id, std::uint64_t count) PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] std::size_t size() const PLAYFS_EXCLUDES(mutex_);
  /// For the end of a mount: an unmount sends no forgets.
  void clear() PLAYFS_EXCLUDES(mutex_);

 private:
  struct Slot {
    NodePtr node;
    std::uint64_t references = 0;
  };
  mutable Mutex mutex_;
  std::unordered_map<NodeId, Slot> slots_ PLAYFS_GUARDED_BY(mutex_);
  std::atomic<NodeId> next_{kRootNode + 1};
};

}  // namespace playfs::vfs
