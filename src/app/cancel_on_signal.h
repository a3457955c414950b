// Cancels what a command waits for when it is to stop (Ctrl-C, SIGTERM, SIGHUP), so that it can say how far it came;
// then the command ends by that signal, in the destructor. A second signal ends it at once. For one thread, and one
// object at a time.
#pragma once

#include <chrono>
#include <thread>

#include "app/deferred_signals.h"
#include "base/cancel.h"
#include "base/mutex.h"

namespace playfs::app {

class CancelOnSignal {
 public:
  CancelOnSignal() : watcher_([this] { watch(); }) {}
  ~CancelOnSignal() {
    {
      MutexLock lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    watcher_.join();
  }
  CancelOnSignal(const CancelOnSignal&) = delete;
  CancelOnSignal& operator=(const CancelOnSignal&) = delete;

  [[nodiscard]] CancelToken token() const { return source_.token(); }

 private:
  /// A handler may call next to nothing, so a thread looks whether it ran.
  void watch() {
    constexpr std::chrono::milliseconds kLookForSignal{50};
    {
      MutexLock lock(mutex_);
      while (!ended_ && !signals_.came()) changed_.wait_for(mutex_, kLookForSignal);
    }
    if (signals_.came()) source_.cancel();
  }

  DeferredSignals signals_;
  CancelSource source_;
  Mutex mutex_;
  Condition changed_;
  bool ended_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::thread watcher_;  // last: uses all of the above
};

}  // namespace playfs::app
