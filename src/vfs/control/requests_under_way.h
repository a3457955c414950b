// The texts that are being written to a mount's request files, or processed: their order, who waits for which, and the
// watches that tell of their closes. Thread-safe; its lock is a leaf.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "vfs/control/close_watcher.h"
#include "vfs/control/request_text.h"

namespace playfs::vfs {

class RequestFile;

class RequestsUnderWay {
 public:
  /// nullptr removes the watcher; requests that it saw closed until then are started.
  void set_watcher(std::shared_ptr<CloseWatcher> watcher) PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] std::shared_ptr<CloseWatcher> watcher() const PLAYFS_EXCLUDES(mutex_);

  void add(const std::string& path, const std::shared_ptr<RequestFile>& file, const RequestTextPtr& text)
      PLAYFS_EXCLUDES(mutex_);
  void remove(const RequestTextPtr& text) PLAYFS_EXCLUDES(mutex_);
  /// Whether this call started it. Assigns it an order number; these increase with time, also from mount to mount.
  [[nodiscard]] bool start(const RequestTextPtr& text, WallTime now) PLAYFS_EXCLUDES(mutex_);
  /// An order number for a request that has no text.
  [[nodiscard]] std::int64_t next_order(WallTime now) PLAYFS_EXCLUDES(mutex_);
  /// The running request of that file that was completed just before `text`; nullptr: it is the turn of `text`.
  [[nodiscard]] RequestTextPtr running_before(const std::string& path, const RequestTextPtr& text)
      PLAYFS_EXCLUDES(mutex_);

  /// Allocates an id for a watch of `file`; the watcher's lookup is expected to find that node.
  CloseWatcher::Watch expect(const std::shared_ptr<RequestFile>& file) PLAYFS_EXCLUDES(mutex_);
  /// Whether the lookup found it. Ends the expectation.
  bool was_found(CloseWatcher::Watch watch) PLAYFS_EXCLUDES(mutex_);
  /// The file to return if the lookup comes from the watcher's own thread, else nullptr.
  [[nodiscard]] std::shared_ptr<RequestFile> looked_for_by(pid_t thread) PLAYFS_EXCLUDES(mutex_);

  /// Starts those of `path` whose file was closed.
  void settle(const std::string& path) PLAYFS_EXCLUDES(mutex_) { settled(&path); }
  /// What a reader of `path` waits for: the last request whose text is complete, else one still being written by
  /// another process or without a watch; nullptr: nothing.
  [[nodiscard]] RequestTextPtr awaited(const std::string& path, pid_t reader) PLAYFS_EXCLUDES(mutex_);
  /// The last request that is complete, has no answer yet, and creates such a record (RequestFile::creates).
  [[nodiscard]] RequestTextPtr creating(const std::string& collection, const std::string* owner)
      PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] bool is_written_by(const std::string& path, pid_t process) const PLAYFS_EXCLUDES(mutex_);

  /// Ends the mount's requests: waits briefly for complete ones, discards incomplete ones.
  void end() PLAYFS_EXCLUDES(mutex_);

 private:
  struct Item {
    std::string path;
    std::shared_ptr<RequestFile> file;
    RequestTextPtr text;
  };
  struct Expected {
    std::weak_ptr<RequestFile> file;
    bool found = false;
  };
  /// All requests, or those of `path`. First starts those whose file was closed, so that nobody waits for them in vain.
  std::vector<Item> settled(const std::string* path) PLAYFS_EXCLUDES(mutex_);
  std::int64_t next(WallTime now) PLAYFS_REQUIRES(mutex_);

  mutable Mutex mutex_;
  Condition changed_;
  std::shared_ptr<CloseWatcher> watcher_ PLAYFS_GUARDED_BY(mutex_);
  std::vector<Item> items_ PLAYFS_GUARDED_BY(mutex_);  ///< in the order of their first writes
  std::map<CloseWatcher::Watch, Expected> expected_ PLAYFS_GUARDED_BY(mutex_);
  std::int64_t last_order_ PLAYFS_GUARDED_BY(mutex_) = 0;
  std::uint64_t removals_ PLAYFS_GUARDED_BY(mutex_) = 0;
  CloseWatcher::Watch next_watch_ PLAYFS_GUARDED_BY(mutex_) = 1;
};

}  // namespace playfs::vfs
