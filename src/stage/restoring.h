// Makes staged paths what they were in a checkpoint: a Rebase onto the same base, in which what the checkpoint has is
// put or removed, and what is staged now but was not then follows the base.
//
// plan() decides, prepare() copies bytes, apply() changes rows and memory at one moment. Between them anything may
// change, so the caller plans again with the lock under which it applies. Private to this module.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stage/rebase.h"
#include "stage/store/snapshots.h"

namespace playfs::stage {

class Restoring {
 public:
  /// `paths`: only what is at and below them; none: everything. `folder`: of the snapshot.
  Restoring(Stage::State& state, Snapshot snapshot, UniqueFd folder, std::vector<std::string> paths);

  /// Fails if it cannot be done as things are. REQUIRES: the stage's mutex, for this and for apply(), which
  /// thread-safety analysis cannot match with this object's.
  [[nodiscard]] Status plan(const Survey& now);
  /// Everything is as in the checkpoint.
  [[nodiscard]] bool has_nothing_to_do() const { return changes_ == 0 && !changes_notes_; }
  /// Whether the checkpoint has all that is staged at and below the paths. REQUIRES: as plan().
  [[nodiscard]] bool has_all(const Survey& now) const;
  /// Whether prepare() has made all that is to be put.
  [[nodiscard]] bool is_prepared() const;
  /// Copies the bytes, synced, under names that do not count yet; take_names() makes them count.
  [[nodiscard]] Status prepare();
  [[nodiscard]] Status take_names();
  [[nodiscard]] Result<Restored> apply();
  /// Without changes.
  [[nodiscard]] Restored outcome() const;

 private:
  [[nodiscard]] bool is_wanted(std::string_view path) const;
  [[nodiscard]] bool is_as_then(Inode& inode, const FrozenFile& file) const PLAYFS_REQUIRES(state_.mutex);
  [[nodiscard]] std::optional<std::string> blocked_by_base(const std::string& path) const PLAYFS_REQUIRES(state_.mutex);
  [[nodiscard]] Status check_paths(const Survey& now) const;
  [[nodiscard]] bool stands_on_same_base() const PLAYFS_REQUIRES(state_.mutex) {
    return id_of(state_.base) == snapshot_.head.base;
  }
  /// A merge is taken up again only on the base that it was begun on.
  [[nodiscard]] bool restores_merge() const PLAYFS_REQUIRES(state_.mutex) { return whole_ && stands_on_same_base(); }
  [[nodiscard]] std::vector<RevisionId> parents_after() const PLAYFS_REQUIRES(state_.mutex);
  [[nodiscard]] std::vector<Conflicted> conflicted_after() const PLAYFS_REQUIRES(state_.mutex);
  /// What was published since the checkpoint was made, and a commit would take back.
  [[nodiscard]] std::vector<Conflicted> overtaken(const std::vector<Conflicted>& known) const
      PLAYFS_REQUIRES(state_.mutex);
  [[nodiscard]] Tracked tracked_after() const PLAYFS_REQUIRES(state_.mutex);
  [[nodiscard]] bool needs_hash(const FrozenFile& file) const { return is_overtaken_ && file.spool != 0; }
  [[nodiscard]] bool changes_rules() const;
  /// Gives a prepared file with published bytes its place: in the base, or a revision that is kept for it.
  void place(const InodePtr& inode, const FrozenFile& file, std::vector<RescuedRow>& rescued)
      PLAYFS_REQUIRES(state_.mutex);
  void conceal(Batch& batch) const PLAYFS_REQUIRES(state_.mutex);

  Stage::State& state_;
  const Snapshot snapshot_;
  const UniqueFd folder_;
  const std::vector<std::string> paths_;
  const bool whole_;
  // As planned:
  std::vector<const FrozenFile*> put_;
  std::vector<std::string> removed_;
  PathSet dropped_;  ///< they follow the base
  PathSet deleted_;  ///< those of them where a file, if there is one, is local-only
  std::vector<std::string> local_only_;
  std::size_t changes_ = 0;
  bool changes_notes_ = false;
  bool is_overtaken_ = false;  ///< by another base
  // As prepared:
  std::map<std::string, InodePtr, std::less<>> prepared_;
  std::map<std::string, ContentHash, std::less<>> hashes_;  ///< of the bytes that were copied
  std::vector<SpoolFilePtr> copies_;
};

}  // namespace playfs::stage
