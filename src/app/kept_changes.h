// In which checkpoints a command kept what it dropped: one for all paths, unless others wrote there meanwhile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace playfs::app {

class KeptChanges {
 public:
  struct Kept {
    std::uint64_t checkpoint = 0;
    std::string paths;  ///< words of a command line, each after a space
  };

  /// `path`: as such a word. `checkpoint`: 0, if nothing was dropped there.
  void add(std::uint64_t checkpoint, const std::string& path) {
    if (checkpoint == 0) return;
    if (latest() != checkpoint) all_.push_back({checkpoint, {}});
    all_.back().paths += " " + path;
  }
  /// 0: none.
  [[nodiscard]] std::uint64_t latest() const { return all_.empty() ? 0 : all_.back().checkpoint; }
  [[nodiscard]] const std::vector<Kept>& all() const { return all_; }

 private:
  std::vector<Kept> all_;
};

}  // namespace playfs::app
