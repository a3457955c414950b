// A disk that forgets what was not synced: records every change that this process makes to the files below one
// directory, and can recreate the directory as a power loss at any moment might have left it.
//
// It replaces libc's calls (open, write, fsync …) for the whole executable and its libraries, so the executable must
// export its symbols. While one exists, nothing is really synced, which makes it fast. A power loss keeps any subset of
// the unsynced changes, and any prefix of the unsynced names, as journaling file systems do. Single-threaded.
#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <vector>

namespace playfs::test {

class ForgetfulDisk {
 public:
  /// What `directory` holds now counts as durable. One at a time.
  explicit ForgetfulDisk(std::string directory);
  ~ForgetfulDisk();
  ForgetfulDisk(const ForgetfulDisk&) = delete;
  ForgetfulDisk& operator=(const ForgetfulDisk&) = delete;

  /// The number of recorded changes and syncs.
  [[nodiscard]] std::size_t events() const;
  void stop();
  /// From `first` on, the number of events before each sync, and the total. A power loss at any other moment leaves a
  /// state that one of these may leave. REQUIRES: stop() was called.
  [[nodiscard]] std::vector<std::size_t> cuts(std::size_t first) const;
  /// Recreates the directory in `target`, as after a power loss behind the first `count` events. REQUIRES: stop() was
  /// called.
  void lay_out(std::size_t count, std::mt19937_64& random, const std::string& target) const;
};

}  // namespace playfs::test
