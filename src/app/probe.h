// Looking at a path that may lie in a mount whose process hangs: whoever asks there waits for ever, and no signal but
// SIGKILL ends that. So a child process looks, and is left to itself where it is not back in time. Any command that is
// given a path, or finds a mount in the table, looks this way first. Blocking; no shared state.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace playfs::app {

class Probe {
 public:
  enum class State {
    answers,  ///< also where nothing is there
    dead,     ///< the process of the mount there has ended
    silent,   ///< no answer came in time: of the path, or of what is on the way to it
  };
  struct Found {
    State state = State::silent;
    /// The path with links resolved as far as it exists; of a dead mount by those of its parent; as it was given where
    /// it is silent, or where it leads up from what is not there.
    std::string real;
  };

  /// Begins to look. `path` is absolute.
  explicit Probe(std::string path);
  Probe(Probe&& other) noexcept;
  Probe& operator=(Probe&&) = delete;
  ~Probe();

  /// Waits, up to kPatience from the beginning. REQUIRES: called once.
  [[nodiscard]] Found found();

  /// More than a machine takes that is busy with much else.
  static constexpr std::chrono::seconds kPatience{5};

 private:
  std::string path_;
  std::chrono::steady_clock::time_point begun_;
  pid_t child_ = -1;
  UniqueFd answer_;
};

/// Whether there is a ".." in it. As it is resolved there is none, unless what is in front of that is no directory.
[[nodiscard]] inline bool leads_up(std::string_view path) {
  return path.ends_with("/..") || path.find("/../") != std::string_view::npos;
}

[[nodiscard]] inline Probe::Found look_at(std::string path) { return Probe(std::move(path)).found(); }

/// What to say of a path that is `silent`.
[[nodiscard]] tl::unexpected<Error> silence_of(const std::string& path);

}  // namespace playfs::app
