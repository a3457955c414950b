// Sends cache invalidations to the kernel, on threads of its own, which start with the first one or with start(), and
// after the state has changed. They stay in order per node, and nodes do not wait for each other.
//
// An invalidation can block where no signal reaches. Dropping a name takes the directory's lock, which the kernel also
// holds while it waits for our answer to a lookup there; dropping pages takes page locks, which it holds while they are
// read. So every operation that has to wait declares which nodes the kernel may keep locked for it (Hold). Meanwhile
// nothing is sent that would block: invalidations wait until the operation is answered. Names that have waited for a
// second are invalidated by the one message that takes no lock, which makes the kernel revalidate all names of the
// mount (Linux 6.16; on older kernels they wait on).
//
// An invalidation can also cross a request that is already on its way to us. If that is a lookup, and it would have to
// wait, it yields: it is answered ESTALE, and the kernel looks again after the invalidation.
//
// Nothing is sent from within an operation, and no operation waits for an invalidation without a limit. Thread-safe.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/callback.h"
#include "base/mutex.h"
#include "vfs/attempt.h"

namespace playfs::vfs {

class Notifications {
 public:
  Notifications() = default;
  /// Drops whatever was not delivered.
  ~Notifications();
  Notifications(const Notifications&) = delete;
  Notifications& operator=(const Notifications&) = delete;

  /// Starts the threads now: for a mount, which runs on, and might later find none to be had.
  void start() PLAYFS_EXCLUDES(mutex_);
  /// nullptr: nobody. When this returns, the previous receiver is no longer called.
  void set_receiver(KernelNotifier* receiver) PLAYFS_EXCLUDES(mutex_);

  /// `whose`: a free tag that when_told() waits for.
  void entry_changed(NodeId parent, std::string name, const std::string& whose = {});
  void node_changed(NodeId node, std::int64_t offset, const std::string& whose = {});
  /// Runs `task` after everything queued so far for this node has been delivered.
  void then(NodeId node, Task task);
  /// Runs `task` once everything queued so far under `whose` has been delivered, or dropped because the mount ends.
  void when_told(const std::string& whose, Task task) PLAYFS_EXCLUDES(mutex_);

  /// While it lives, no blocking invalidation of these nodes is sent. Must not outlive the Notifications.
  class Hold {
   public:
    Hold(Notifications& of, Locked what) : of_(&of), what_(std::move(what)) {}
    Hold(Hold&& other) noexcept : of_(std::exchange(other.of_, nullptr)), what_(std::move(other.what_)) {}
    Hold& operator=(Hold&&) = delete;
    ~Hold() {
      if (of_) of_->release(what_);
    }

   private:
    Notifications* of_;
    Locked what_;
  };
  /// nullopt if one of the nodes is just being invalidated and the lookup by thread `yields` has to yield. A thread is
  /// not asked to yield twice for the same node.
  [[nodiscard]] std::optional<Hold> hold(const Locked& what, std::optional<pid_t> yields) PLAYFS_EXCLUDES(mutex_);

 private:
  using SteadyClock = std::chrono::steady_clock;
  enum class Kind { entry, pages, attributes, task };
  struct Delivery;  // shared by all undelivered items of one `whose`
  struct Item {
    Kind kind = Kind::task;
    std::string name;
    std::int64_t offset = 0;
    Task task;
    std::shared_ptr<Delivery> delivery;
  };
  /// The queue of one node.
  struct Queue {
    std::deque<Item> items;
    bool is_ready = false;     ///< in ready_
    bool is_telling = false;   ///< its first item, already taken out, is being delivered
    bool takes_names = false;  ///< that delivery takes the directory's lock
    unsigned names_held = 0, pages_held = 0;
  };
  struct Job {
    NodeId node = 0;
    Item item;
    bool by_all_names = false;  ///< by revalidating all names, without the directory's lock
    KernelNotifier* receiver = nullptr;
  };

  void push(NodeId node, Item item, const std::string& whose) PLAYFS_EXCLUDES(mutex_);
  void start_threads() PLAYFS_REQUIRES(mutex_);
  void run();
  [[nodiscard]] std::optional<Job> next() PLAYFS_EXCLUDES(mutex_);
  /// Returns false if the kernel does not support this kind of invalidation.
  static bool deliver(Job& job);
  void end(Job job, bool delivered) PLAYFS_EXCLUDES(mutex_);
  void release(const Locked& what) PLAYFS_EXCLUDES(mutex_);
  /// Whether the kernel would block on this invalidation now.
  [[nodiscard]] bool would_block(NodeId node, const Queue& queue, Kind kind) const PLAYFS_REQUIRES(mutex_);
  void make_ready(NodeId node, Queue& queue) PLAYFS_REQUIRES(mutex_);
  void drop_if_idle(NodeId node) PLAYFS_REQUIRES(mutex_);
  /// Forgets lookups that yielded and never came back: their process ended or is stopped.
  void forget_yielded() PLAYFS_REQUIRES(mutex_);
  void wake_names_that_waited() PLAYFS_REQUIRES(mutex_);

  Mutex mutex_;
  Condition changed_;
  std::unordered_map<NodeId, Queue> queues_ PLAYFS_GUARDED_BY(mutex_);
  std::deque<NodeId> ready_ PLAYFS_GUARDED_BY(mutex_);  ///< nodes with something to deliver
  /// Lookups that yielded and are expected back, by directory and thread. Until then the directory counts as held.
  std::map<std::pair<NodeId, pid_t>, SteadyClock::time_point> yielded_ PLAYFS_GUARDED_BY(mutex_);
  /// Directories whose names have to wait, and since when.
  std::map<NodeId, SteadyClock::time_point> names_wait_ PLAYFS_GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::weak_ptr<Delivery>> deliveries_ PLAYFS_GUARDED_BY(mutex_);
  bool knows_all_names_ PLAYFS_GUARDED_BY(mutex_) = true;  ///< until the kernel refuses the message
  KernelNotifier* receiver_ PLAYFS_GUARDED_BY(mutex_) = nullptr;
  unsigned telling_ PLAYFS_GUARDED_BY(mutex_) = 0;
  bool ending_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::vfs
