// A disk that forgets what was not synced: every change that this process makes to the files below one directory is
// written down, and the directory can be laid out again as a power loss at any moment might have left it.
//
// It stands in for libc's calls (open, write, fsync …) of the whole executable, libraries included, which therefore has
// to export its symbols. As long as there is one nothing is really synced, so it is fast. Of the changes that were not
// synced a power loss keeps any; of names that were not synced any first part, as journaling file systems do. For one
// thread.
#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <vector>

namespace playfs::test {

class ForgetfulDisk {
 public:
  /// What is in `directory` now is safe. One at a time.
  explicit ForgetfulDisk(std::string directory);
  ~ForgetfulDisk();
  ForgetfulDisk(const ForgetfulDisk&) = delete;
  ForgetfulDisk& operator=(const ForgetfulDisk&) = delete;

  /// How many changes and syncs were made.
  [[nodiscard]] std::size_t events() const;
  void stop();
  /// From `first` on, how many events there were before each sync, and at the end. A power loss at any other moment
  /// leaves what one of these may leave. REQUIRES: stop() was called.
  [[nodiscard]] std::vector<std::size_t> cuts(std::size_t first) const;
  /// The directory in `target`, as after a power loss behind the first `count` events. REQUIRES: stop() was called.
  void lay_out(std::size_t count, std::mt19937_64& random, const std::string& target) const;
};

}  // namespace playfs::test
