// A mount: libfuse's low-level session around a vfs::FileSystem.
//
// One thread runs the loop; any thread may answer an operation. One ENOSYS tells the kernel that opening and closing
// need no message, and it gets the caching rules that the vfs's nodes are made for: the kernel revalidates nothing on
// its own, and changes are invalidated by name.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "vfs/control/close_watcher.h"
#include "vfs/file_system.h"

namespace playfs::fuse {

struct MountOptions {
  std::string mountpoint;    ///< a directory, or "/dev/fd/N": an open /dev/fuse that somebody else has mounted
  std::string seen_at = {};  ///< where the mount of "/dev/fd/N" can be seen from here, if it can
  std::string source;        ///< what mount(8) and df show
  bool allow_other = false;
  bool read_only = false;
  bool no_exec = false;
  bool synchronous = false;  ///< the kernel sends an fsync after each write
  bool keeps_links = true;   ///< the kernel caches symlink targets, even of links moved since
};

class Session {
 public:
  /// On return the mount exists, and its requests wait for run(). `file_system` must outlive the session. Errors say
  /// what to do: no such directory, allow_other not permitted; not_permitted if nothing can be mounted by this user.
  /// Takes over the descriptor of "/dev/fd/N"; whoever mounted it also unmounts.
  static Result<std::unique_ptr<Session>> mount(vfs::FileSystem& file_system, const MountOptions& options);
  /// Unmounts if still mounted. REQUIRES: run() is not running, and nobody uses notifier() any more.
  ~Session();

  /// Serves the kernel until the mount is gone, then cancels the remaining requests and returns when the last is
  /// answered. An error if the kernel ended the connection.
  [[nodiscard]] Status run();

  /// Unmounts (lazily if the mount is in use), and ends run(). Callable on any thread, but not from a request.
  void stop();

  /// Whether run() ended before all requests were answered: what holds them up, a stalled disk for example, still uses
  /// the file system and this session. Neither may be destroyed then; the process has to end.
  [[nodiscard]] bool has_unanswered() const;
  /// Unmounts, unless somebody else did; nothing is served any more.
  void unmount_at_last();

  /// The time limit of an operation, well within the kernel's. nullopt: none.
  [[nodiscard]] std::optional<std::chrono::milliseconds> request_limit() const;

  /// Valid as long as the session. Must not be called from within an operation, see vfs::KernelNotifier.
  [[nodiscard]] vfs::KernelNotifier& notifier();

  /// Sees files closed in the mount; nullptr if this user has no inotify instances left.
  [[nodiscard]] std::shared_ptr<vfs::CloseWatcher> close_watcher() const;

 private:
  struct State;
  explicit Session(std::unique_ptr<State> state);
  /// Whether the loop ended although the mount is still there.
  [[nodiscard]] static bool was_aborted(const State& state);
  std::unique_ptr<State> state_;
};

/// N of the mount point "/dev/fd/N".
std::optional<int> passed_device(const std::string& mountpoint);

/// Unmounts a mount of any process: by umount(2) if this process may, by fusermount3 otherwise. `lazy` detaches one
/// that is in use or dead.
Status unmount(const std::string& mountpoint, bool lazy);

}  // namespace playfs::fuse
