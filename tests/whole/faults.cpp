#include "whole/faults.h"

namespace playfs::sim {

Fault planted = Fault::none;

const char* name_of(Fault fault) {
  switch (fault) {
    case Fault::none: return "none";
    case Fault::stale_log: return "stale-log";
    case Fault::no_verify: return "no-verify";
    case Fault::key_after_sending: return "key-after-sending";
    case Fault::scan_cut_short: return "scan-cut-short";
    case Fault::scan_starts_over: return "scan-starts-over";
    case Fault::not_searched: return "not-searched";
    case Fault::merge_keeps_deleted: return "merge-keeps-deleted";
    case Fault::covers_everything: return "covers-everything";
    case Fault::key_not_journalled: return "key-not-journalled";
    case Fault::wrong_chunk: return "wrong-chunk";
    case Fault::branch_as_published: return "branch-as-published";
    case Fault::not_announced: return "not-announced";
    case Fault::left_out_forgotten: return "left-out-forgotten";
    case Fault::cancel_after_post: return "cancel-after-post";
    case Fault::thaw_drops: return "thaw-drops";
    case Fault::conflict_not_noted: return "conflict-not-noted";
    case Fault::conflict_not_asked: return "conflict-not-asked";
    case Fault::state_conflict_dropped: return "state-conflict-dropped";
    case Fault::conflict_followed: return "conflict-followed";
    case Fault::unseen: return "unseen";
    case Fault::settle_drops: return "settle-drops";
    case Fault::freeze_forgets: return "freeze-forgets";
    case Fault::kept_dropped: return "kept-dropped";
    case Fault::kept_overwritten: return "kept-overwritten";
    case Fault::tracked_forgotten: return "tracked-forgotten";
    case Fault::merge_not_put: return "merge-not-put";
    case Fault::loss_not_seen: return "loss-not-seen";
    case Fault::loss_not_kept: return "loss-not-kept";
    case Fault::one_404_is_gone: return "one-404-is-gone";
    case Fault::bytes_not_synced: return "bytes-not-synced";
    case Fault::journal_not_synced: return "journal-not-synced";
    case Fault::names_not_synced: return "names-not-synced";
    case Fault::log_not_synced: return "log-not-synced";
    case Fault::sync_error_forgotten: return "sync-error-forgotten";
  }
  return "";
}

}  // namespace playfs::sim
