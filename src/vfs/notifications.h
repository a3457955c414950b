// What the kernel is told, from threads of its own, after the state has changed: of one node in order, and one node
// does not wait for another.
//
// Telling the kernel may block where no signal reaches: to drop a name it takes the lock of the directory, which it
// also holds while it waits for our answer to a lookup there; to drop pages, their locks, which it holds while they are
// read. So each operation that has to wait says which nodes the kernel may hold for it (Hold), and while there is such
// a one nothing is told that would block: pages are told of when the operation has been answered, and of names the
// kernel is told by the one word that needs no lock, that all of the mount are to be asked for anew (Linux 6.16;
// before, names wait like pages).
//
// What is under way to us from the kernel while it is being told cannot be known. If it is a lookup, and it has to
// wait, it yields: it is answered ESTALE, for which the kernel looks again, after it has been told.
//
// Nothing is told from within an operation, and no operation waits for it without a limit. Thread-safe.
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
  Notifications();
  /// What was not delivered is dropped.
  ~Notifications();
  Notifications(const Notifications&) = delete;
  Notifications& operator=(const Notifications&) = delete;

  /// From now on; nullptr: nobody, and when this returns the one before is not called any more.
  void set_receiver(KernelNotifier* receiver) PLAYFS_EXCLUDES(mutex_);

  /// `whose`: any text that when_told() is asked by.
  void entry_changed(NodeId parent, std::string name, const std::string& whose = {});
  void node_changed(NodeId node, std::int64_t offset, const std::string& whose = {});
  /// Runs when all before it about this node has been delivered.
  void then(NodeId node, Task task);
  /// Runs when all before it of `whose` has been delivered, or dropped because the mount ends.
  void when_told(const std::string& whose, Task task) PLAYFS_EXCLUDES(mutex_);

  /// While it lives the kernel is not made to wait for these nodes. Must not outlive the Notifications.
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
  /// nullopt: the kernel is just being told of one, and `yields`, the thread behind a lookup, has to yield. The same
  /// one is not asked for that twice.
  [[nodiscard]] std::optional<Hold> hold(const Locked& what, std::optional<pid_t> yields) PLAYFS_EXCLUDES(mutex_);

 private:
  using Clock = std::chrono::steady_clock;
  enum class Kind { entry, pages, attributes, task };
  struct Told;  // those of one `whose` that were not delivered yet share one
  struct Item {
    Kind kind = Kind::task;
    std::string name;
    std::int64_t offset = 0;
    Task task;
    std::shared_ptr<Told> told;
  };
  /// Of one node.
  struct Lane {
    std::deque<Item> items;
    bool is_ready = false;     ///< in ready_
    bool is_telling = false;   ///< its first item, taken out, is being delivered
    bool takes_names = false;  ///< that takes the directory's lock
    unsigned names_held = 0, pages_held = 0;
  };
  struct Job {
    NodeId node = 0;
    Item item;
    bool by_all_names = false;  ///< without the lock of the directory
    KernelNotifier* receiver = nullptr;
  };

  void push(NodeId node, Item item, const std::string& whose) PLAYFS_EXCLUDES(mutex_);
  void run();
  [[nodiscard]] std::optional<Job> next() PLAYFS_EXCLUDES(mutex_);
  /// False: not in this way, on this kernel.
  static bool deliver(Job& job);
  void end(Job job, bool delivered) PLAYFS_EXCLUDES(mutex_);
  void release(const Locked& what) PLAYFS_EXCLUDES(mutex_);
  /// Whether the kernel would have to wait before it can do what it is told.
  [[nodiscard]] bool would_block(NodeId node, const Lane& lane, Kind kind) const PLAYFS_REQUIRES(mutex_);
  void make_ready(NodeId node, Lane& lane) PLAYFS_REQUIRES(mutex_);
  void drop_if_idle(NodeId node) PLAYFS_REQUIRES(mutex_);
  /// Those that yielded and did not come back: their process ended, or is stopped.
  void forget_yielded() PLAYFS_REQUIRES(mutex_);

  Mutex mutex_;
  Condition changed_;
  std::unordered_map<NodeId, Lane> lanes_ PLAYFS_GUARDED_BY(mutex_);
  std::deque<NodeId> ready_ PLAYFS_GUARDED_BY(mutex_);  ///< nodes with something to be told
  /// Lookups on their way back, by directory and thread: until then it counts as held.
  std::map<std::pair<NodeId, pid_t>, Clock::time_point> yielded_ PLAYFS_GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::weak_ptr<Told>> told_ PLAYFS_GUARDED_BY(mutex_);
  bool knows_all_names_ PLAYFS_GUARDED_BY(mutex_) = true;  ///< as far as was tried
  KernelNotifier* receiver_ PLAYFS_GUARDED_BY(mutex_) = nullptr;
  unsigned telling_ PLAYFS_GUARDED_BY(mutex_) = 0;
  bool ending_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace playfs::vfs
