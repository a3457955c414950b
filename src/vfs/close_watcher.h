// Who tells that a file of this mount which was open for writing has been closed.
//
// The kernel does not tell the file system: open and release are answered ENOSYS for the whole mount, which is what
// makes reading cheap. But it tells inotify, which `fuse/` asks about the mount itself. A watch is in place before the
// first write is answered, so the close cannot be missed. Thread-safe.
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

  /// Watches the file at `path`, from the mount's root, under a number of the caller's choice. A thread of its own
  /// looks the path up in the mount, and tells `armed` how that went. `closed` runs there too, at most once, when
  /// somebody who could write has closed the file.
  virtual void watch(Watch watch, std::string path, Callback<void> armed, Task closed) = 0;
  /// Whether it has been closed by now: also in the moment before `closed` runs.
  [[nodiscard]] virtual bool was_closed(Watch watch) = 0;
  virtual void end(Watch watch) = 0;
  /// The watch whose path is being looked up, if `thread` is the one that does so.
  [[nodiscard]] virtual std::optional<Watch> looked_up_by(pid_t thread) const = 0;
};

}  // namespace playfs::vfs
