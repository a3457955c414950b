// In which checkpoints a command kept what it dropped: one for all paths, unless others wrote there meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace playfs::app {

class KeptChanges {
 public:
  struct Kept {
    std::uint64_t checkpoint = 0;
    std::vector<std::string> paths;  ///< in the work tree

    /// The rest of a command line that names them. `word`: how it names one.
    [[nodiscard]] std::string words(const std::function<std::string(const std::string&)>& word) const {
      std::string all;
      for (const std::string& path : paths) all += " " + word(path);
      return all;
    }
  };

  /// `checkpoint`: 0, or no paths, if nothing was dropped there.
  void add(std::uint64_t checkpoint, const std::vector<std::string>& paths) {
    if (checkpoint == 0 || paths.empty()) return;
    if (latest() != checkpoint) all_.push_back({checkpoint, {}});
    all_.back().paths.insert(all_.back().paths.end(), paths.begin(), paths.end());
  }
  /// 0: none.
  [[nodiscard]] std::uint64_t latest() const { return all_.empty() ? 0 : all_.back().checkpoint; }
  [[nodiscard]] const std::vector<Kept>& all() const { return all_; }

 private:
  std::vector<Kept> all_;
};

struct DroppedChanges {
  std::uint64_t paths = 0;  ///< how many
  KeptChanges kept = {};
};

}  // namespace playfs::app
