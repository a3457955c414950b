// A stage's background work: checkpointing the operations log and removing spool files.
//
// Thread-safe. Jobs run one at a time on a thread that starts with the first request and ends with the object; jobs not
// started by then are dropped. Without a worker thread, requests run on the caller, so that tests can rely on an order.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "base/mutex.h"

namespace playfs::stage {

class Housekeeper {
 public:
  using Work = std::function<void()>;
  /// `remove` runs at most `patience` after the first request for it, so that one run handles several files.
  Housekeeper(Work checkpoint, Work remove, std::chrono::milliseconds patience, bool own_thread)
      : checkpoint_(std::move(checkpoint)), remove_(std::move(remove)), patience_(patience), own_thread_(own_thread) {}
  ~Housekeeper() { stop(); }
  Housekeeper(const Housekeeper&) = delete;
  Housekeeper& operator=(const Housekeeper&) = delete;

  [[nodiscard]] bool has_thread() const { return own_thread_; }
  void want_checkpoint();
  void want_removal(bool at_once);
  /// Waits for the running job; later requests are ignored.
  void stop();

 private:
  using Time = std::chrono::steady_clock::time_point;
  void wake() PLAYFS_REQUIRES(mutex_);
  void run();
  void do_now(const Work& work);

  const Work checkpoint_, remove_;
  const std::chrono::milliseconds patience_;
  const bool own_thread_;
  Mutex mutex_;
  Condition wished_;
  bool stopping_ PLAYFS_GUARDED_BY(mutex_) = false;
  bool wants_checkpoint_ PLAYFS_GUARDED_BY(mutex_) = false;
  bool wants_removal_ PLAYFS_GUARDED_BY(mutex_) = false;
  Time removal_due_ PLAYFS_GUARDED_BY(mutex_);
  std::thread thread_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::stage
