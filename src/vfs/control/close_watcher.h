// Reports when a file of this mount that was open for writing is closed.
//
// The file system itself never sees the close: open and release are answered ENOSYS for the whole mount, which is what
// makes reads cheap. inotify does see it, so `fuse/` sets inotify watches on its own mount. The first write is answered
// only after the watch is in place, so no close is missed. Thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/callback.h"

namespace playfs::vfs {

class CloseWatcher {
 public:
  using Watch = std::uint64_t;
  virtual ~CloseWatcher() = default;

  /// Watches the file at `path` (relative to the mount's root) under an id chosen by the caller. The watcher's own
  /// thread looks the path up in the mount and reports the result to `armed`. `closed` runs on that thread, at most
  /// once, after a writer has closed the file.
  virtual void watch(Watch watch, std::string path, Callback<void> armed, Task closed) = 0;
  /// Whether the file has been closed; true even before `closed` has run.
  [[nodiscard]] virtual bool was_closed(Watch watch) = 0;
  virtual void end(Watch watch) = 0;
  /// The watch whose path is being looked up, if `thread` is the watcher's own.
  [[nodiscard]] virtual std::optional<Watch> looked_up_by(pid_t thread) const = 0;
};

}  // namespace playfs::vfs
