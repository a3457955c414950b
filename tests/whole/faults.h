// Faults that are planted to check that they are caught. Nothing of them is in src: network faults are made by the
// watcher (simulation.cpp), deeper ones by functions that the linker substitutes (`--wrap`, below.cpp and meson.build).
#pragma once

namespace playfs::sim {

enum class Fault {
  none,
  // On the way to the service.
  stale_log,          ///< head and log, once read, are trusted from then on
  no_verify,          ///< head is assumed to stay where it was sent
  key_after_sending,  ///< a revision is sent with another key each time
  scan_cut_short,     ///< the scan for siblings sees only the newest revision
  scan_starts_over,   ///< a new process does not know how far the log was read
  not_searched,       ///< nothing checks whether an unanswered request was stored after all
  // In the merge of versions.
  merge_keeps_deleted,  ///< a merge forgets what one side deleted
  covers_everything,    ///< any revision counts as containing all that another contains
  // In the journal and the engine.
  key_not_journalled,   ///< the journalled key is not the one sent
  wrong_chunk,          ///< a chunk is journalled under the id of the previous one
  branch_as_published,  ///< a branch is reported as published
  not_announced,        ///< a branch is not announced
  left_out_forgotten,   ///< a foreign branch is named only as long as the log is not forgotten
  cancel_after_post,    ///< a commit returns to the stage although it may have been sent
  // In the stage.
  thaw_drops,              ///< what is returned to the stage is lost
  conflict_not_noted,      ///< conflicts of an update are not recorded
  conflict_not_asked,      ///< a commit does not check for conflicts
  state_conflict_dropped,  ///< a state value changed on both sides is not a conflict
  conflict_followed,       ///< a clean tree follows head despite a conflict
  unseen,                  ///< a merge overwrites what was written since it read
  settle_drops,            ///< what was written during a commit is lost
  freeze_forgets,          ///< frozen bytes are not synced, but count as synced
  kept_dropped,            ///< local-only files are lost when a commit settles
  kept_overwritten,        ///< local-only files are replaced by what a merge brings
  tracked_forgotten,       ///< merged files with an ignored name count as local-only
  merge_not_put,           ///< the result of merging a file is not put in place, but counts as if it were
  // When the service goes back or lags.
  loss_not_seen,    ///< a revision that existed once is assumed to exist
  loss_not_kept,    ///< published content that the service lost is not kept
  one_404_is_gone,  ///< what a replica does not show yet counts as lost
  // On disk: syncs that do nothing.
  bytes_not_synced,    ///< of a file
  journal_not_synced,  ///< of the publisher's journal
  names_not_synced,    ///< of a directory
  log_not_synced,      ///< of the stage's operations log
  // On a disk whose syncs fail.
  sync_error_forgotten,  ///< a failed sync is retried, and then trusted
};
const char* name_of(Fault fault);
inline constexpr int kFaults = static_cast<int>(Fault::sync_error_forgotten) + 1;

/// The fault that is planted at present.
extern Fault planted;

}  // namespace playfs::sim
