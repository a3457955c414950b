// Planted faults below the publisher's interface. The linker redirects calls of these functions from other files here;
// without a planted fault they behave like the real ones. The names are also in meson.build: if a signature changes,
// change both, or the fault is no longer planted and `--fault all` reports that it was not caught.
#include <algorithm>
#include <utility>

#include "model/lineage.h"
#include "publish/absences.h"
#include "publish/announce.h"
#include "publish/conflicts.h"
#include "publish/integration.h"
#include "publish/journal.h"
#include "publish/log_scan.h"
#include "publish/publication_engine.h"
#include "publish/publisher.h"
#include "stage/stage.h"
#include "stage/store/spool.h"
#include "whole/faults.h"
#include "whole/world.h"

#define PLAYFS_REAL(symbol) asm("__real_" symbol)
#define PLAYFS_WRAP(symbol) asm("__wrap_" symbol)

namespace playfs::sim {

using publish::Ending;
using publish::Journal;
using publish::Publication;
using publish::Upload;

// merge_versions
#define PLAYFS_SYMBOL                                                                                                \
  "_ZN6playfs14merge_versionsERKNS_7VersionES2_S2_RKSt8functionIFN2tl8expectedINSt7__cxx1112basic_stringIcSt11char_" \
  "traitsIcESaIcEEENS_5ErrorEEENS_9MergeSideERKSB_RKNS_9FileEntryEEERKNS_11MergeLabelsE"
Result<Merge> real_merge(const Version&, const Version&, const Version&, const ReadEntry&, const MergeLabels&)
    PLAYFS_REAL(PLAYFS_SYMBOL);
Result<Merge> wrap_merge(const Version&, const Version&, const Version&, const ReadEntry&, const MergeLabels&)
    PLAYFS_WRAP(PLAYFS_SYMBOL);
Result<Merge> wrap_merge(const Version& base, const Version& ours, const Version& theirs, const ReadEntry& read,
                         const MergeLabels& labels) {
  auto merge = real_merge(base, ours, theirs, read, labels);
  if (planted != Fault::merge_keeps_deleted || !merge) return merge;
  for (const Manifest* side : {&ours.manifest, &theirs.manifest})
    for (const auto& [path, entry] : side->files)
      if (base.manifest.files.contains(path) && !merge->files.contains(path))
        merge->files[path] = {entry, std::nullopt};
  return merge;
}
#undef PLAYFS_SYMBOL

// Holdings::covers
#define PLAYFS_SYMBOL "_ZNK6playfs8Holdings6coversERKNS_2IdINS_11RevisionTagEEES5_"
bool real_covers(const Holdings*, const RevisionId&, const RevisionId&) PLAYFS_REAL(PLAYFS_SYMBOL);
bool wrap_covers(const Holdings*, const RevisionId&, const RevisionId&) PLAYFS_WRAP(PLAYFS_SYMBOL);
bool wrap_covers(const Holdings* self, const RevisionId& a, const RevisionId& b) {
  return planted == Fault::covers_everything || real_covers(self, a, b);
}
#undef PLAYFS_SYMBOL

// LogScan::search
#define PLAYFS_SYMBOL "_ZN6playfs7publish7LogScan6searchENS_8WallTimeE"
Status real_search(publish::LogScan*, WallTime) PLAYFS_REAL(PLAYFS_SYMBOL);
Status wrap_search(publish::LogScan*, WallTime) PLAYFS_WRAP(PLAYFS_SYMBOL);
Status wrap_search(publish::LogScan* self, WallTime from) {
  return planted == Fault::not_searched ? Status() : real_search(self, from);
}
#undef PLAYFS_SYMBOL

// Journal::scan_position
#define PLAYFS_SYMBOL "_ZN6playfs7publish7Journal13scan_positionB5cxx11Ev"
Result<std::string> real_scan_position(Journal*) PLAYFS_REAL(PLAYFS_SYMBOL);
Result<std::string> wrap_scan_position(Journal*) PLAYFS_WRAP(PLAYFS_SYMBOL);
Result<std::string> wrap_scan_position(Journal* self) {
  return planted == Fault::scan_starts_over ? std::string() : real_scan_position(self);
}
#undef PLAYFS_SYMBOL

// Journal::record_posting
#define PLAYFS_SYMBOL                                                                                                  \
  "_ZN6playfs7publish7Journal14record_postingERNS0_11PublicationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE" \
  "S9_St6vectorIS9_SaIS9_EE"
Status real_posting(Journal*, Publication&, std::string, std::string, std::vector<std::string>)
    PLAYFS_REAL(PLAYFS_SYMBOL);
Status wrap_posting(Journal*, Publication&, std::string, std::string, std::vector<std::string>)
    PLAYFS_WRAP(PLAYFS_SYMBOL);
Status wrap_posting(Journal* self, Publication& publication, std::string key, std::string body,
                    std::vector<std::string> conflicts) {
  Status written = real_posting(self, publication, std::move(key), std::move(body), std::move(conflicts));
  if (planted == Fault::key_not_journalled && !publication.key.empty())
    publication.key.front() = publication.key.front() == '0' ? '1' : '0';
  return written;
}
#undef PLAYFS_SYMBOL

// Journal::record_acknowledged
#define PLAYFS_SYMBOL \
  "_ZN6playfs7publish7Journal19record_acknowledgedERNS0_11PublicationERKSt6vectorINS0_6UploadESaIS5_EE"
Status real_acknowledged(Journal*, Publication&, const std::vector<Upload>&) PLAYFS_REAL(PLAYFS_SYMBOL);
Status wrap_acknowledged(Journal*, Publication&, const std::vector<Upload>&) PLAYFS_WRAP(PLAYFS_SYMBOL);
Status wrap_acknowledged(Journal* self, Publication& publication, const std::vector<Upload>& uploads) {
  static ChunkId last;
  if (planted != Fault::wrong_chunk) return real_acknowledged(self, publication, uploads);
  auto shifted = uploads;
  for (auto& upload : shifted) {
    ChunkId mine = upload.chunk;
    if (!last.empty()) upload.chunk = last;
    last = mine;
  }
  return real_acknowledged(self, publication, shifted);
}
#undef PLAYFS_SYMBOL

// Journal::record_settling
#define PLAYFS_SYMBOL                                                                     \
  "_ZN6playfs7publish7Journal15record_settlingERNS0_11PublicationENS0_6EndingENS_2IdINS_" \
  "11RevisionTagEEESt6vectorINSt7"                                                        \
  "__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESaISE_EE"
Status real_settling(Journal*, Publication&, Ending, RevisionId, std::vector<std::string>) PLAYFS_REAL(PLAYFS_SYMBOL);
Status wrap_settling(Journal*, Publication&, Ending, RevisionId, std::vector<std::string>) PLAYFS_WRAP(PLAYFS_SYMBOL);
Status wrap_settling(Journal* self, Publication& publication, Ending ending, RevisionId merged,
                     std::vector<std::string> conflicts) {
  if (planted == Fault::branch_as_published && ending == Ending::branched) ending = Ending::published;
  return real_settling(self, publication, ending, std::move(merged), std::move(conflicts));
}
#undef PLAYFS_SYMBOL

// Journal::record_left_out
#define PLAYFS_SYMBOL                                                                       \
  "_ZN6playfs7publish7Journal15record_left_outERKSt3mapINS_2IdINS_11RevisionTagEEENS_8Wall" \
  "TimeESt4lessIS5_ESaISt4pairIKS5_S6_EEE"
Status real_left_out(Journal*, const std::map<RevisionId, WallTime>&) PLAYFS_REAL(PLAYFS_SYMBOL);
Status wrap_left_out(Journal*, const std::map<RevisionId, WallTime>&) PLAYFS_WRAP(PLAYFS_SYMBOL);
Status wrap_left_out(Journal* self, const std::map<RevisionId, WallTime>& left_out) {
  return planted == Fault::left_out_forgotten ? Status() : real_left_out(self, left_out);
}
#undef PLAYFS_SYMBOL

// announce
#define PLAYFS_SYMBOL \
  "_ZN6playfs7publish8announceERNS0_8UpstreamERNS0_7JournalERKNS_2IdINS_10ProjectTagEEERKNS0_12AnnouncementE"
Status real_announce(publish::Upstream&, Journal&, const ProjectId&, const publish::Announcement&)
    PLAYFS_REAL(PLAYFS_SYMBOL);
Status wrap_announce(publish::Upstream&, Journal&, const ProjectId&, const publish::Announcement&)
    PLAYFS_WRAP(PLAYFS_SYMBOL);
Status wrap_announce(publish::Upstream& upstream, Journal& journal, const ProjectId& project,
                     const publish::Announcement& announcement) {
  if (planted == Fault::not_announced) return {};
  return real_announce(upstream, journal, project, announcement);
}
#undef PLAYFS_SYMBOL

// PublicationEngine::can_be_cancelled
#define PLAYFS_SYMBOL "_ZN6playfs7publish17PublicationEngine16can_be_cancelledERKNS0_11PublicationE"
bool real_can_be_cancelled(const Publication&) PLAYFS_REAL(PLAYFS_SYMBOL);
bool wrap_can_be_cancelled(const Publication&) PLAYFS_WRAP(PLAYFS_SYMBOL);
bool wrap_can_be_cancelled(const Publication& publication) {
  return planted == Fault::cancel_after_post || real_can_be_cancelled(publication);
}
#undef PLAYFS_SYMBOL

// Stage::thaw
#define PLAYFS_SYMBOL "_ZN6playfs5stage5Stage4thawERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
Status real_thaw(stage::Stage*, const std::string&) PLAYFS_REAL(PLAYFS_SYMBOL);
Status wrap_thaw(stage::Stage*, const std::string&) PLAYFS_WRAP(PLAYFS_SYMBOL);
Status wrap_thaw(stage::Stage* self, const std::string& tx) {
  Status thawed = real_thaw(self, tx);
  if (planted == Fault::thaw_drops && thawed) static_cast<void>(self->discard(""));
  return thawed;
}
#undef PLAYFS_SYMBOL

// Spool::sync, of many
#define PLAYFS_SYMBOL "_ZN6playfs5stage5Spool4syncERKSt6vectorISt10shared_ptrINS0_9SpoolFileEESaIS5_EE"
Status real_sync(stage::Spool*, const std::vector<stage::SpoolFilePtr>&) PLAYFS_REAL(PLAYFS_SYMBOL);
Status wrap_sync(stage::Spool*, const std::vector<stage::SpoolFilePtr>&) PLAYFS_WRAP(PLAYFS_SYMBOL);
Status wrap_sync(stage::Spool* self, const std::vector<stage::SpoolFilePtr>& files) {
  return planted == Fault::freeze_forgets ? Status() : real_sync(self, files);
}
#undef PLAYFS_SYMBOL

// unresolved
#define PLAYFS_SYMBOL "_ZN6playfs7publish10unresolvedERNS_5stage5StageE"
Result<std::vector<stage::Conflicted>> real_unresolved(stage::Stage&) PLAYFS_REAL(PLAYFS_SYMBOL);
Result<std::vector<stage::Conflicted>> wrap_unresolved(stage::Stage&) PLAYFS_WRAP(PLAYFS_SYMBOL);
Result<std::vector<stage::Conflicted>> wrap_unresolved(stage::Stage& stage) {
  if (planted == Fault::conflict_not_asked) return std::vector<stage::Conflicted>();
  return real_unresolved(stage);
}
#undef PLAYFS_SYMBOL

// Stage::integrate
#define PLAYFS_SYMBOL                                                                                           \
  "_ZN6playfs5stage5Stage9integrateESt10shared_ptrIKNS_12RevisionTreeEERKNS0_6MergedERKSt6vectorINS_2IdINS_11R" \
  "evisionTagEEESaISC_EERKSt8functionIFvRKS9_INS0_12InvalidationESaISI_EEEE"
Status real_integrate(stage::Stage*, RevisionTreePtr, const stage::Merged&, const std::vector<RevisionId>&,
                      const stage::Told&) PLAYFS_REAL(PLAYFS_SYMBOL);
Status wrap_integrate(stage::Stage*, RevisionTreePtr, const stage::Merged&, const std::vector<RevisionId>&,
                      const stage::Told&) PLAYFS_WRAP(PLAYFS_SYMBOL);

/// A file that a merge puts beside a local-only one just replaces it.
void put_over_kept(stage::Merged& merged) {
  auto at = [&](const std::string& path) {
    return std::find_if(merged.paths.begin(), merged.paths.end(), [&](const auto& each) { return each.path == path; });
  };
  for (const auto& each : merged.conflicted.value_or(std::vector<stage::Conflicted>())) {
    auto kept = at(each.path), beside = at(each.beside);
    if (!each.is_kept_here || kept == merged.paths.end() || beside == merged.paths.end()) continue;
    kept->action = stage::MergedPath::Action::put;
    kept->content = std::exchange(beside->content, nullptr);
    beside->action = stage::MergedPath::Action::keep;
  }
}

/// The merge as the stage gets to see it.
stage::Merged spoiled(const stage::Merged& merged) {
  if (auto owner = World::owner()) owner->replacing();
  stage::Merged told = merged;
  if (planted == Fault::unseen)
    for (auto& path : told.paths) path.seen.reset();
  if (planted == Fault::kept_overwritten) put_over_kept(told);
  if (planted == Fault::state_conflict_dropped && told.conflicted)
    std::erase_if(*told.conflicted, [](const auto& each) { return publish::is_of_state(each); });
  if (planted == Fault::tracked_forgotten) told.tracked.clear();
  if (planted == Fault::merge_not_put)
    for (auto& path : told.paths) path.action = stage::MergedPath::Action::keep;
  if (planted == Fault::conflict_not_noted && told.conflicted) told.conflicted->clear();
  return told;
}

Status wrap_integrate(stage::Stage* self, RevisionTreePtr base, const stage::Merged& merged,
                      const std::vector<RevisionId>& parents, const stage::Told& told) {
  Status integrated = real_integrate(self, std::move(base), spoiled(merged), parents, told);
  if (auto owner = World::owner()) owner->replaced();
  return integrated;
}
#undef PLAYFS_SYMBOL

// Stage::settle
#define PLAYFS_SYMBOL                                                                                           \
  "_ZN6playfs5stage5Stage6settleERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESt10shared_ptrIKNS_12Re" \
  "visionTreeEERKNS0_6MergedERKSt8functionIFvRKSt6vectorINS0_12InvalidationESaISJ_EEEE"
Status real_settle(stage::Stage*, const std::string&, RevisionTreePtr, const stage::Merged&, const stage::Told&)
    PLAYFS_REAL(PLAYFS_SYMBOL);
Status wrap_settle(stage::Stage*, const std::string&, RevisionTreePtr, const stage::Merged&, const stage::Told&)
    PLAYFS_WRAP(PLAYFS_SYMBOL);

void drop_kept(stage::Stage& stage) {
  auto kept = stage.unpublished();
  if (!kept) return;
  for (const std::string& path : *kept) {
    const std::size_t slash = path.rfind('/');
    auto directory = slash == std::string::npos ? stage.root() : stage.find(path.substr(0, slash));
    if (directory) static_cast<void>(stage.unlink(directory, path.substr(slash + 1)));
  }
}

Status wrap_settle(stage::Stage* self, const std::string& tx, RevisionTreePtr base, const stage::Merged& merged,
                   const stage::Told& told) {
  Status settled = real_settle(self, tx, std::move(base), spoiled(merged), told);
  if (auto owner = World::owner()) owner->replaced();
  if (planted == Fault::settle_drops && settled) static_cast<void>(self->discard(""));
  if (planted == Fault::kept_dropped && settled) drop_kept(*self);
  return settled;
}
#undef PLAYFS_SYMBOL

// Absences::look
#define PLAYFS_SYMBOL "_ZN6playfs7publish8Absences4lookERKNS_2IdINS_11RevisionTagEEE"
using publish::Absences;
Result<Absences::Presence> real_look(Absences*, const RevisionId&) PLAYFS_REAL(PLAYFS_SYMBOL);
Result<Absences::Presence> wrap_look(Absences*, const RevisionId&) PLAYFS_WRAP(PLAYFS_SYMBOL);
Result<Absences::Presence> wrap_look(Absences* self, const RevisionId& revision) {
  auto presence = real_look(self, revision);
  const bool is_hidden = presence && *presence == Absences::Presence::not_shown;
  return planted == Fault::one_404_is_gone && is_hidden ? Absences::Presence::gone : presence;
}
#undef PLAYFS_SYMBOL

// Absences::is_gone
#define PLAYFS_SYMBOL "_ZN6playfs7publish8Absences7is_goneERKNS_2IdINS_11RevisionTagEEE"
Result<bool> real_is_gone(Absences*, const RevisionId&) PLAYFS_REAL(PLAYFS_SYMBOL);
Result<bool> wrap_is_gone(Absences*, const RevisionId&) PLAYFS_WRAP(PLAYFS_SYMBOL);
Result<bool> wrap_is_gone(Absences* self, const RevisionId& revision) {
  auto is_gone = real_is_gone(self, revision);
  const bool is_hidden = !is_gone && is_gone.error().code == ErrorCode::busy;
  return planted == Fault::one_404_is_gone && is_hidden ? true : is_gone;
}
#undef PLAYFS_SYMBOL

// Publisher::keep_lost_base
#define PLAYFS_SYMBOL                                                                                            \
  "_ZN6playfs7publish9Publisher14keep_lost_baseESt10shared_ptrIKNS_12RevisionTreeEENS_11CancelTokenENS_14Unique" \
  "FunctionIFvN2tl8expectedIbNS_5ErrorEEEEEE"
void real_keep(publish::Publisher*, RevisionTreePtr, CancelToken, Callback<bool>) PLAYFS_REAL(PLAYFS_SYMBOL);
void wrap_keep(publish::Publisher*, RevisionTreePtr, CancelToken, Callback<bool>) PLAYFS_WRAP(PLAYFS_SYMBOL);
void wrap_keep(publish::Publisher* self, RevisionTreePtr head, CancelToken cancel, Callback<bool> done) {
  if (planted == Fault::loss_not_kept) return done(false);
  real_keep(self, std::move(head), std::move(cancel), std::move(done));
}
#undef PLAYFS_SYMBOL

}  // namespace playfs::sim
