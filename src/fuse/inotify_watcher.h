// Reports closes of files in our own mount through inotify; vfs/control/close_watcher.h says why.
//
// One thread looks paths up, which the mount's own loop has to answer meanwhile, and waits for events. An inotify watch
// keeps no file open, so it does not block an unmount. The event is queued before the close(2) that caused it returns.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/result.h"
#include "vfs/control/close_watcher.h"

namespace playfs::fuse {

class InotifyWatcher final : public vfs::CloseWatcher {
 public:
  static Result<std::shared_ptr<InotifyWatcher>> start(std::string mountpoint);
  ~InotifyWatcher() override { stop(); }
  InotifyWatcher(const InotifyWatcher&) = delete;
  InotifyWatcher& operator=(const InotifyWatcher&) = delete;

  /// Ends the thread; nothing is reported afterwards. REQUIRES: the mount is served or gone, since a lookup in progress
  /// waits for it. Must not be called from a callback.
  void stop() PLAYFS_EXCLUDES(mutex_);

  void watch(Watch watch, std::string path, Callback<void> armed, Task closed) override PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] bool was_closed(Watch watch) override PLAYFS_EXCLUDES(mutex_);
  void end(Watch watch) override PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] std::optional<Watch> looked_up_by(pid_t thread) const override;

 private:
  struct Watched {
    int descriptor = -1;  ///< inotify's; several watches of one file share it
    bool closed = false;
    Task then;
  };
  struct Order {
    Watch watch = 0;
    std::string path;
    Callback<void> armed;
  };

  InotifyWatcher(std::string mountpoint, UniqueFd events, UniqueFd wake);
  void run() PLAYFS_EXCLUDES(mutex_);
  void carry_out(Order order) PLAYFS_EXCLUDES(mutex_);
  /// Reads the pending inotify events without waiting; whether there were any.
  bool take_events() PLAYFS_REQUIRES(mutex_);
  void tell_closed() PLAYFS_EXCLUDES(mutex_);
  void wake();

  const std::string mountpoint_;
  const UniqueFd events_, wake_;
  std::atomic<pid_t> thread_id_ = 0;
  std::atomic<Watch> looking_up_ = 0;
  Mutex mutex_;
  std::map<Watch, Watched> watched_ PLAYFS_GUARDED_BY(mutex_);
  std::set<int> early_ PLAYFS_GUARDED_BY(mutex_);  ///< closed before their watch was known
  std::deque<Order> orders_ PLAYFS_GUARDED_BY(mutex_);
  bool stopping_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace playfs::fuse
