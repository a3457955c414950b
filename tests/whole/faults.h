// Mistakes that are built in on purpose, to see them caught. Nothing of them stands in src: those of the network are
// made by whoever watches it (simulation.cpp), those further in by functions that the linker puts in the place of the
// real ones (`--wrap`, below.cpp and meson.build).
#pragma once

namespace playfs::sim {

enum class Fault {
  none,
  // On the way to the service.
  stale_log,          ///< what was read of head and the log once is believed from then on
  no_verify,          ///< where head was sent to it is taken to stand from then on
  key_after_sending,  ///< the key of a revision is another each time it is sent
  scan_cut_short,     ///< the scan for siblings sees only the newest revision
  scan_starts_over,   ///< a new process does not know how far the log was read
  not_searched,       ///< nobody looks whether what had no answer was stored after all
  // In the merge of versions.
  merge_keeps_deleted,  ///< a merge forgets what one side deleted
  covers_everything,    ///< any revision is taken to hold all that another holds
  // In the journal and the engine.
  key_not_journalled,   ///< the key that is journalled is not the one that is sent
  wrong_chunk,          ///< a chunk is journalled under the id of the one before it
  branch_as_published,  ///< a branch is reported as published
  not_announced,        ///< a branch is not announced
  cancel_after_post,    ///< a commit is given back although it may have been sent
  // In the stage.
  thaw_drops,              ///< what is given back is lost
  conflict_not_noted,      ///< what an update left in conflict is not written down
  conflict_not_asked,      ///< a commit does not look whether anything is in conflict
  state_conflict_dropped,  ///< where both sides changed a value of the state nobody is asked
  conflict_followed,       ///< a clean tree follows head though something is in conflict
  unseen,                  ///< what a merge puts there takes the place of what was written since it read
  settle_drops,            ///< what was written while its commit was under way is lost
  freeze_forgets,          ///< bytes that were frozen are not synced, and count as if they were
  kept_dropped,            ///< what is kept here alone goes when a commit settles
  kept_overwritten,        ///< what is kept here alone gives way to what a merge brings
  tracked_forgotten,       ///< what a merge brought under a name that is ignored counts as kept here
  merge_not_put,           ///< what a merge makes of a file is not put there, and counts as if it were
  // Where the service is not what it was.
  loss_not_seen,    ///< a revision that was there once is taken to be there
  loss_not_kept,    ///< what was published from here and lost there is not kept
  one_404_is_gone,  ///< what a replica does not show yet is taken to be lost
  // On disk: a sync that does nothing.
  bytes_not_synced,    ///< of a file
  journal_not_synced,  ///< of the publisher's journal
  names_not_synced,    ///< of a directory
  log_not_synced,      ///< of the stage's operations
  // On a disk whose syncs fail.
  sync_error_forgotten,  ///< one that failed is tried again, and believed
};
const char* name_of(Fault fault);
inline constexpr int kFaults = 34;

/// The one that is planted at present.
extern Fault planted;

}  // namespace playfs::sim
