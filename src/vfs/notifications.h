// What the kernel is told, from a thread of its own, in order, after the state has changed.
//
// Telling the kernel may block: to drop a name it takes the lock of the directory, which it also holds while it waits
// for our answer to a lookup there. So no operation ever waits for a notification without a limit, and none is sent
// from within one. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <thread>

#include "base/callback.h"
#include "base/mutex.h"
#include "vfs/file_system.h"

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

  void entry_changed(NodeId parent, std::string name);
  void node_changed(NodeId node, std::int64_t offset);
  /// Runs when everything before it has been delivered.
  void then(Task task);

 private:
  using Item = UniqueFunction<void(KernelNotifier*)>;
  void push(Item item) PLAYFS_EXCLUDES(mutex_);
  void run() PLAYFS_EXCLUDES(mutex_);

  Mutex mutex_;
  Condition changed_;
  std::deque<Item> queue_ PLAYFS_GUARDED_BY(mutex_);
  KernelNotifier* receiver_ PLAYFS_GUARDED_BY(mutex_) = nullptr;
  bool delivering_ PLAYFS_GUARDED_BY(mutex_) = false;
  bool ending_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace playfs::vfs
