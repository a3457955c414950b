// Loads what the disk has of a stage as a tree in memory, while the stage is being opened.
#pragma once

#include "stage/stage_state.h"

namespace playfs::stage {

/// REQUIRES: the stage's mutex, which thread-safety analysis cannot match with this object's.
class Loader {
 public:
  explicit Loader(Stage::State& state) : state_(state), stored_(state.rows->stored()) {}

  /// Records a new stage.
  [[nodiscard]] Status create(const RevisionTreePtr& given);
  [[nodiscard]] Status load(RevisionTreePtr given);
  /// Comes last: rows for the inodes that got their old bytes back.
  [[nodiscard]] Status record_returned();

 private:
  [[nodiscard]] Status load_values(const RevisionTreePtr& given) PLAYFS_REQUIRES(state_.mutex);
  [[nodiscard]] Status load_sizes();
  SpoolFilePtr file_of_earlier_run(std::uint64_t number);
  [[nodiscard]] Status load_tree() PLAYFS_REQUIRES(state_.mutex);
  [[nodiscard]] Status load_pending() PLAYFS_REQUIRES(state_.mutex);
  [[nodiscard]] Status load_replacements() PLAYFS_REQUIRES(state_.mutex);
  /// Removes the spool files that were given up, and sets aside those that nothing accounts for.
  [[nodiscard]] Status load_spool() PLAYFS_REQUIRES(state_.mutex);
  [[nodiscard]] Status set_aside(const std::vector<std::uint64_t>& numbers);
  /// Reports the files, by `names`, that are known to be lost.
  void tell_of_lost(std::vector<std::string> names);

  Stage::State& state_;
  Tables& stored_;
  std::unordered_map<std::uint64_t, SpoolFile::Noted> known_sizes_;  ///< minimum sizes of spool files
  /// Inodes that got their old bytes back, with the number of the spool file that had replaced these.
  std::vector<std::pair<std::uint64_t, InodePtr>> returned_;
};

}  // namespace playfs::stage
