// Examines a path that may be in a mount whose process hangs. Accessing it would block forever, and only SIGKILL could
// end that. So a child process does it, and is abandoned if it is not back in time. Every command that gets a path, or
// finds a mount in the table, starts with this. Blocking; no shared state.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/limited_child.h"
#include "runtime/mount_table.h"

namespace playfs::runtime {

class Probe {
 public:
  enum class State {
    answers,  ///< also if nothing is there
    dead,     ///< the process of the mount there has ended
    silent,   ///< no answer came in time: from the path, or from one on the way to it
  };
  struct Answer {
    State state = State::silent;
    /// The path with links resolved as far as it exists; for a dead mount, resolved up to its parent; unchanged if it
    /// is silent, or if it has a ".." after something that does not exist.
    std::string real;
  };

  /// Starts the child. `path` is absolute.
  explicit Probe(std::string path);

  /// Waits up to kPatience from the start. REQUIRES: called once.
  [[nodiscard]] Answer found();

  /// More than a busy machine needs.
  static constexpr std::chrono::seconds kPatience{5};

 private:
  std::string path_;
  LimitedChild child_;
};

/// Whether the path contains a "..". A resolved path only does if a ".." follows something that is not a directory.
[[nodiscard]] inline bool leads_up(std::string_view path) {
  return path.ends_with("/..") || path.find("/../") != std::string_view::npos;
}

[[nodiscard]] inline Probe::Answer look_at(std::string path) { return Probe(std::move(path)).found(); }
/// Likewise, but without a child process if nothing is mounted that can hang.
[[nodiscard]] Probe::Answer look_at(std::string path, const std::vector<MountEntry>& mounted);

/// The error for a path that is `silent`.
[[nodiscard]] tl::unexpected<Error> silence_of(const std::string& path);

}  // namespace playfs::runtime
