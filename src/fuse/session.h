// A mount: libfuse's low-level session around a vfs::FileSystem.
//
// One thread runs the loop; operations are answered by whichever thread has the answer. The kernel is told once, by
// ENOSYS, that opening and closing need no message, and is given the caching rules that the vfs's nodes are made for:
// nothing is revalidated behind our back, what changes is invalidated by name.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "vfs/close_watcher.h"
#include "vfs/file_system.h"

namespace playfs::fuse {

struct MountOptions {
  std::string mountpoint;
  std::string source;  ///< what mount(8) and df show
  bool allow_other = false;
  bool read_only = false;
  bool no_exec = false;
  bool synchronous = false;  ///< the kernel sends an fsync behind each write
  bool keeps_links = true;   ///< the kernel keeps where links lead, also once they stand elsewhere
};

class Session {
 public:
  /// Mounts: when this returns the mount is there, and its requests wait for run(). `file_system` must outlive the
  /// session. Errors say what to do: no /dev/fuse, no fusermount3, no such directory, allow_other not permitted.
  static Result<std::unique_ptr<Session>> mount(vfs::FileSystem& file_system, const MountOptions& options);
  /// Unmounts if it is still mounted. REQUIRES: run() is not running, and nobody uses notifier() any more.
  ~Session();

  /// Serves the kernel until the mount is gone (an error where the kernel ended it), then cancels what is still waited
  /// for and returns when the last request is answered.
  [[nodiscard]] Status run();

  /// Unmounts from any thread (not from a request): at once where nothing uses the mount, else lazily, and ends run().
  void stop();

  /// How long an operation may take: well within what the kernel allows. nullopt: as long as it wants.
  [[nodiscard]] std::optional<std::chrono::milliseconds> request_limit() const;

  /// Valid as long as the session. Must not be called from within an operation, see vfs::KernelNotifier.
  [[nodiscard]] vfs::KernelNotifier& notifier();

  /// Sees what is closed in the mount; nullptr where this system has no more inotify instances for this user.
  [[nodiscard]] std::shared_ptr<vfs::CloseWatcher> close_watcher() const;

 private:
  struct State;
  explicit Session(std::unique_ptr<State> state);
  /// After the loop: whether it ended though the mount is there.
  [[nodiscard]] static bool was_aborted(const State& state);
  std::unique_ptr<State> state_;
};

/// Unmounts a mount of any process: umount(2) as root, fusermount3 otherwise. `lazy` detaches one that is in use or
/// whose process died.
Status unmount(const std::string& mountpoint, bool lazy);

}  // namespace playfs::fuse
