// Does something again and again, on a thread of its own, while the object lives. The destructor waits for an act that
// is running, but not for the next one.
#pragma once

#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "base/mutex.h"

namespace playfs::app {

class Repeated {
 public:
  /// After `first`, then `interval` after each act.
  Repeated(std::chrono::nanoseconds first, std::chrono::nanoseconds interval, std::function<void()> act)
      : act_(std::move(act)), thread_([this, first, interval] {
          for (auto wait = first; has_waited(wait); wait = interval) act_();
        }) {}
  ~Repeated() {
    {
      MutexLock lock(mutex_);
      is_ended_ = true;
    }
    ended_.notify_one();
    thread_.join();
  }
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;

 private:
  /// False if it is to end.
  bool has_waited(std::chrono::nanoseconds time) PLAYFS_EXCLUDES(mutex_) {
    const auto due = std::chrono::steady_clock::now() + time;
    MutexLock lock(mutex_);
    while (!is_ended_ && std::chrono::steady_clock::now() < due)
      ended_.wait_for(mutex_, due - std::chrono::steady_clock::now());
    return !is_ended_;
  }

  const std::function<void()> act_;
  Mutex mutex_;
  Condition ended_;
  bool is_ended_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: uses all of the above
};

}  // namespace playfs::app
