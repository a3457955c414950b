// What merges left behind, until it is published: further parents, paths that are published despite the ignore rules,
// and conflicts.
//
// Guarded by the stage's mutex. put_* adds rows and leaves memory to the caller; the others change both, memory when
// the batch is committed.
#pragma once

#include "stage/inode.h"
#include "stage/store/row_store.h"

namespace playfs::stage {

struct MergeNotes {
  std::vector<RevisionId> parents;
  Tracked tracked;
  std::vector<Conflicted> conflicted;
  std::set<std::string> accepted_by;  ///< commits that accept these as they are

  static void put_parents(Batch& batch, const std::vector<RevisionId>& parents);
  void put_tracked(Batch& batch, const Tracked& paths) const;
  static void put_conflicted(Batch& batch, const std::vector<Conflicted>& list);
  static void put_accepted_by(Batch& batch, const std::set<std::string>& commits);
  /// Sets another list, which no commit has accepted yet.
  void replace_conflicted(Batch& batch, std::vector<Conflicted> list);
  /// `by` takes the last name of `gone`, and with it the conflicts of `gone`.
  void hand_on_conflicts(Batch& batch, const Inode& gone, const Inode& by);
  /// What is in conflict below a directory moves with it. `moves`: from where to where, all at once.
  void move_conflicts(Batch& batch, const std::map<std::string, std::string>& moves);

 private:
  /// Sets the list again, with other paths or inodes.
  void update_conflicted(Batch& batch, std::vector<Conflicted> list);
};

/// Fails with `busy` if the list of conflicts is no longer what a caller has seen.
Status check_seen(const std::optional<std::vector<Conflicted>>& seen, const std::vector<Conflicted>& now);
/// Keeps the list sorted.
void add_conflicts(std::vector<Conflicted>& list, std::vector<Conflicted> added);

}  // namespace playfs::stage
