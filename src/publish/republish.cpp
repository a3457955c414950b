// Publishing to a service that went back to an older state: what it lost is published again from what is here, and
// nothing counts as published that refers to something lost.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/text.h"
#include "model/chunking.h"
#include "publish/lost_base.h"
#include "publish/publication_engine.h"
#include "wire/continuation.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::publish {

namespace {

/// How often the wait for something missing is doubled.
constexpr int kMostDoublings = 5;
/// How often an acknowledged revision that is not shown is published again: half an hour in all.
constexpr int kMostCopies = 4;
constexpr std::size_t kPathsNamed = 5;

bool names_one_of(const FileEntry& entry, const ChunkIds& gone) {
  return std::any_of(entry.chunks.begin(), entry.chunks.end(), [&](const ChunkId& id) { return gone.contains(id); });
}

/// A revision of this one file, for readers of content that need a revision.
RevisionTreePtr alone(const ProjectId& project, const std::string& tx, const std::string& path,
                      const FileEntry& entry) {
  Revision revision;
  revision.project = project;
  revision.manifest.tx = tx;
  revision.manifest.files.emplace(path, entry);
  return std::make_shared<const RevisionTree>(std::move(revision));
}

Error content_is_not_shown(const std::string& path) {
  return {ErrorCode::busy,
          escape_for_terminal(path) +
              ": the service does not show this content, and there is no copy here: its reads lag, or it went back to "
              "an older state",
          "wait: playfs keeps looking for it, and treats it as lost if it does not appear"};
}

Error content_is_lost(const std::vector<std::string>& paths) {
  std::string named;
  for (std::size_t i = 0; i < std::min(paths.size(), kPathsNamed); ++i)
    named += (i == 0 ? "" : ", ") + escape_for_terminal(paths[i]);
  if (paths.size() > kPathsNamed) named += " and " + std::to_string(paths.size() - kPathsNamed) + " more";
  return {ErrorCode::corrupt,
          named + ": the service went back to an older state and lost this content, and there is no copy here",
          "playfs update, if head has it by now; or restore or delete it, then commit again"};
}

Error not_shown_yet() {
  return {ErrorCode::busy, "the service does not show what it stored: its reads lag, or it went back to an older state",
          "wait: playfs keeps looking for it, and publishes it again if it does not appear"};
}

}  // namespace

Result<bool> PublicationEngine::is_never_shown(const Publication& publication) const {
  if (publication.step != Step::posted && publication.step != Step::patching) return false;
  PLAYFS_TRY(int times, parts_.journal.times_planned_again(publication));
  return times >= kMostCopies;
}

Result<bool> PublicationEngine::may_be_given_back(const Publication& publication) const {
  PLAYFS_TRY(bool is_in_log, has_hollow(publication));
  if (!is_in_log && can_be_cancelled(publication)) return true;
  return is_never_shown(publication);
}

Result<bool> PublicationEngine::has_hollow(const Publication& publication) const {
  PLAYFS_TRY(RevisionId hollow, parts_.journal.hollow(publication.tx));
  return !hollow.empty();
}

Result<RevisionId> PublicationEngine::head_that_exists(const RevisionId& head) {
  PLAYFS_TRY(bool gone, parts_.absences.is_gone(head));
  if (!gone) return head;
  // Head was moved there before the service went back; the log says where it belongs. Publishing moves it there, a dry
  // run does not.
  PLAYFS_TRY(ConvergedState converged, convergence_.run(nullptr, true, nullptr, {}));
  return converged.head;
}

Result<BaseFate> PublicationEngine::fate_of_base(const Project& project, const RevisionTreePtr& head) {
  const BaseParts parts{parts_.project, parts_.upstream, parts_.absences, merging_, parts_.journal, parts_.events};
  PLAYFS_TRY(BaseFate fate, find_fate(parts, parts_.layers.base(), head, project.created_at));
  if (fate.is_lost) stored_.forget_all();
  return fate;
}

/// A revision of this publication that lost chunks stays in the log. The next one gets it as a parent, so that nobody
/// merges it any more, and refers to no lost chunk, whatever others carried forward of it.
Result<RevisionTreePtr> PublicationEngine::join_hollow(const RevisionId& head) {
  work_.gone.clear();
  work_.lost.clear();
  work_.beside = nullptr;
  PLAYFS_TRY(RevisionId hollow, parts_.journal.hollow(work_.frozen.tx));
  if (hollow.empty()) return RevisionTreePtr();
  PLAYFS_TRY(bool is_hollow_gone, parts_.absences.is_gone(hollow));
  if (is_hollow_gone) return RevisionTreePtr();
  auto there = parts_.upstream.revision(hollow);
  if (!there) return fail(there.error().while_doing("read the revision published before"));
  PLAYFS_TRY(work_.gone, stored_.find_missing(chunks_of((*there)->tree.manifest())));
  if (!head.empty()) {
    PLAYFS_TRY(auto holdings, Holdings::compare({head, hollow}, merging_.links()));
    if (holdings.covers(head, hollow)) return *there;
  }
  work_.beside = *there;
  PLAYFS_TRY(bool has_more, has_more_than_head(**there, head));
  if (has_more) PLAYFS_CHECK(refill(*there, *there));
  work_.target.parents.push_back(hollow);
  return RevisionTreePtr();
}

/// If the layer clashes with head by now, it becomes a branch based on the hollow revision: a branch on the base would
/// seem to delete what others had published before.
Status PublicationEngine::branch_off_hollow() {
  Target& target = work_.target;
  auto conflicts = std::move(target.conflicts);
  PLAYFS_CHECK(refill(work_.beside, work_.beside));
  target.conflicts = std::move(conflicts);
  work_.carries = true;
  if (!work_.frozen.base.empty()) target.parents.push_back(work_.frozen.base);
  return {};
}

/// What the hollow revision was merged with when it was published. That is no change of this publication.
std::vector<RevisionId> PublicationEngine::taken_in_by(const RevisionTree& hollow) const {
  std::vector<RevisionId> others;
  const auto& taken_in = work_.frozen.merge_parents;
  for (const RevisionId& parent : hollow.revision.parents)
    if (parent != work_.frozen.base && std::find(taken_in.begin(), taken_in.end(), parent) == taken_in.end())
      others.push_back(parent);
  return others;
}

/// Whether `hollow` is based on something of others that head does not hold. The service may have lost that since; then
/// this revision is all that is left of it.
Result<bool> PublicationEngine::has_more_than_head(const RevisionTree& hollow, const RevisionId& head) {
  for (const RevisionId& parent : taken_in_by(hollow)) {
    if (head.empty()) return true;
    PLAYFS_TRY(auto holdings, Holdings::compare({head, parent}, merging_.links()));
    if (!holdings.covers(head, parent)) return true;
    PLAYFS_TRY(bool is_parent_gone, parts_.absences.is_gone(parent));
    if (is_parent_gone) return true;
  }
  return false;
}

/// Others merged the hollow revision, and may have continued from there. So head has the layer's changes, and they are
/// not merged again: with that merge base both sides would have made them, and they would clash with what came after.
Status PublicationEngine::refill(const RevisionTreePtr& head, const RevisionTreePtr& hollow) {
  const auto& made_on = hollow->revision.parents;
  if (!made_on.empty() && made_on.front() != work_.frozen.base) {
    auto on = parts_.upstream.revision(made_on.front());
    if (!on && is_transient(on.error().code)) return fail(on.error());
    if (on) PLAYFS_CHECK(merge_with(snapshot_of(work_.target.on), *on));  // texts of that merge are nowhere else
  }
  work_.lost = work_.puts;
  for (PutFile& put : work_.target.puts) work_.lost.push_back(std::move(put));
  Target& target = work_.target;
  target = {};
  target.on = head;
  target.from = head->tree.manifest();
  target.layer.tx = work_.frozen.tx;
  target.layer.base = head->revision.id;
  target.state = head->revision.state;
  return {};
}

Status PublicationEngine::join_survivor(const RevisionTreePtr& survivor, const RevisionTreePtr& head) {
  Target& target = work_.target;
  const RevisionTreePtr base = target.on;
  PLAYFS_CHECK(merge_with(snapshot_of(survivor), head));
  if (target.on != base || head == survivor) return {};
  // It clashes with what others published since, so it becomes a branch of what is left of its own line.
  auto conflicts = std::move(target.conflicts);
  PLAYFS_CHECK(merge_with(snapshot_of(survivor), survivor));
  target.conflicts = std::move(conflicts);
  return {};
}

Result<bool> PublicationEngine::has_all_chunks(const Publication& publication, const Plan& plan) {
  PLAYFS_TRY(Manifest manifest, with_continuation(plan.draft.manifest, plan.continuation));
  ChunkIds needed = chunks_of(manifest);
  // Head was read a moment ago, and a service that has a revision has everything older.
  for (const RevisionTreePtr& there : {work_.base_is_lost ? nullptr : parts_.layers.base(), work_.target.on})
    if (there)
      for (const auto& chunk : chunks_of(there->tree.manifest()))
        if (!work_.gone.contains(chunk)) needed.erase(chunk);
  PLAYFS_TRY(auto gone, stored_.find_missing(needed));
  if (gone.empty()) return true;
  std::vector<LostChunk> lost;
  for (const auto& chunk : gone) lost.push_back({chunk, parts_.random.uuid()});
  PLAYFS_CHECK(bring_back(manifest, gone));
  PLAYFS_CHECK(parts_.journal.record_lost_chunks(&publication, lost));
  std::erase_if(work_.fetched, [&](const auto& item) { return gone.contains(item.first); });
  auto is_gone = [&](const ChunkId& id) { return gone.contains(id); };
  std::erase_if(work_.stored_by_others.contents, [&](const auto& item) {
    return std::any_of(item.second.chunks.begin(), item.second.chunks.end(), is_gone);
  });
  for (auto& [path, pieces] : work_.stored_by_others.near)
    std::erase_if(pieces, [&](const StoredPiece& piece) { return gone.contains(piece.id); });
  log_event("service_lost_chunks", publication, {{"chunks", std::uint64_t{gone.size()}}});
  return false;
}

/// Publishes the content of files that were only carried forward and lost their chunks.
Status PublicationEngine::bring_back(const Manifest& manifest, const ChunkIds& gone) {
  Target& target = work_.target;
  RevisionTreePtr base = parts_.layers.base();
  const std::string tx = base ? base->tree.manifest().tx : "";
  std::vector<std::string> lost;
  std::map<std::string, Error> left_out;
  std::optional<std::string> not_shown;  // the files after it are looked up all the same, so that one wait is enough
  for (const auto& [path, entry] : manifest.files) {
    if (!names_one_of(entry, gone)) continue;
    auto put = std::find_if(target.puts.begin(), target.puts.end(),
                            [&path = path](const PutFile& one) { return one.path == path; });
    if (put != target.puts.end() && !put->published) continue;  // it is planned again
    auto is_frozen = [&entry = entry](const PutFile& one) {
      return !one.published && one.hash.hex() == entry.hash_claim;
    };
    const auto& puts = work_.lost.empty() ? work_.puts : work_.lost;
    auto frozen = std::find_if(puts.begin(), puts.end(), is_frozen);
    RevisionTreePtr near = alone(parts_.project, tx, path, entry);
    auto content = frozen != puts.end() ? Result<Bytes>(frozen->content)
                                        : parts_.upstream.content(near, path, *near->tree.file_at(path));
    if (!content && is_transient(content.error().code)) return fail(content.error());
    auto examined = content ? examine(*content) : fail(content.error());
    if (!examined) {
      // Leaving it out removes it from head, and a single response does not tell what is lost from what lags. Nor does
      // this error, which may be remembered from the first request.
      const bool is_gone = std::any_of(entry.chunks.begin(), entry.chunks.end(), [&](const ChunkId& chunk) {
        return gone.contains(chunk) && stored_.is_gone(chunk);
      });
      const bool is_ours = std::any_of(work_.puts.begin(), work_.puts.end(),
                                       [&path = path](const PutFile& one) { return one.path == path; });
      if (!is_gone) not_shown = path;
      else if (work_.carries && !is_ours) left_out.emplace(path, examined.error());
      else lost.push_back(path);
      continue;
    }
    PutFile whole{.path = path,
                  .mode = entry.mode,
                  .published = {},
                  .content = *content,
                  .size = content->size(),
                  .hash = examined->hash,
                  .encoding = examined->encoding};
    stage::FrozenFile file{.path = path,
                           .mode = whole.mode,
                           .hash = whole.hash,
                           .size = whole.size,
                           .published = {},
                           .spool = 0,
                           .target = {}};
    // Both lists have the same order.
    auto at = target.layer.files.begin() + std::distance(target.puts.begin(), put);
    if (put == target.puts.end()) {
      target.puts.push_back(std::move(whole));
      target.layer.files.push_back(std::move(file));
    } else {
      *put = std::move(whole);
      *at = std::move(file);
    }
  }
  if (not_shown) return fail(content_is_not_shown(*not_shown));
  if (!lost.empty()) return fail(content_is_lost(lost));
  for (const auto& [path, why] : left_out) leave_out(path, why);
  return {};
}

/// Another client published it, and it cannot be read here. That must not keep a commit from being published.
void PublicationEngine::leave_out(const std::string& path, const Error& why) {
  Target& target = work_.target;
  target.from.files.erase(path);
  auto put = std::find_if(target.puts.begin(), target.puts.end(), [&](const PutFile& one) { return one.path == path; });
  if (put != target.puts.end()) {
    target.layer.files.erase(target.layer.files.begin() + std::distance(target.puts.begin(), put));
    target.puts.erase(put);
  }
  parts_.events.error("projects/" + parts_.project.text(),
                      why.while_doing("carry forward " + path + ", which the service lost"));
}

Result<bool> PublicationEngine::can_stand(const Publication& publication) {
  PLAYFS_TRY(auto body, wire::parse_json(publication.body));
  if (!body.object()) return fail(ErrorCode::corrupt, "the journal has a revision body that is not an object");
  PLAYFS_TRY(auto revision,
             wire::decode_revision(
                 Record{.id = "body", .created_at = {}, .updated_at = {}, .status = {}, .fields = *body.object()}));
  ChunkIds needed = chunks_of(revision.manifest);
  if (revision.manifest.continuation) {
    const FileEntry& entry = revision.manifest.continuation->entry;
    auto near = alone(parts_.project, revision.manifest.tx, kContinuationPath, entry);
    auto text = parts_.upstream.content(near, kContinuationPath, *near->tree.file_at(kContinuationPath));
    if (!text && is_transient(text.error().code)) return fail(text.error());
    if (!text) return false;
    PLAYFS_TRY(std::string lines, text->all());
    if (wire::read_continuation(revision.manifest, lines)) needed.merge(chunks_of(revision.manifest));
  }
  for (const auto& parent : revision.parents) {
    // The caller waits before it plans again.
    PLAYFS_TRY(Absences::Presence presence, parts_.absences.look(parent));
    if (presence != Absences::Presence::there) return false;
    auto there = parts_.upstream.revision(parent);
    if (!there && is_transient(there.error().code)) return fail(there.error());
    if (!there) continue;
    for (const auto& chunk : chunks_of((*there)->tree.manifest())) needed.erase(chunk);
  }
  PLAYFS_TRY(bool is_back, has_base_come_back(revision.parents));
  if (is_back) return false;
  PLAYFS_TRY(auto gone, stored_.find_missing(needed));
  return gone.empty();
}

/// A plan made while the base was lost has everything that the base held as a change. If the base is there after all,
/// that restores what others deleted since. Plans of refill() are not affected: they depend on head, whatever became of
/// the base, so planning again would yield the same each time that the request is lost.
Result<bool> PublicationEngine::has_base_come_back(const std::vector<RevisionId>& made_on) {
  const RevisionId base = id_of(parts_.layers.base());
  if (work_.is_refilled || base.empty() || std::find(made_on.begin(), made_on.end(), base) != made_on.end())
    return false;
  std::vector<RevisionId> compared = made_on;
  compared.push_back(base);
  PLAYFS_TRY(auto holdings, Holdings::compare(compared, merging_.links()));
  if (std::any_of(made_on.begin(), made_on.end(), [&](const auto& id) { return holdings.covers(id, base); }))
    return false;
  PLAYFS_TRY(Absences::Presence presence, parts_.absences.look(base));
  return presence == Absences::Presence::there;
}

/// The request may have been delayed or sent twice, and have reached the service after it went back and forgot the key.
/// The service then created another revision, which is the commit's from now on, with its chunks or without.
Result<bool> PublicationEngine::adopt_copy(Publication& publication) {
  PLAYFS_TRY(auto found, find_posted(publication));
  if (!found) return false;
  if (found->id == publication.revision.text()) {  // the log shows it now, so it was only late
    work_.missing = {};
    return fail(not_shown_yet());
  }
  PLAYFS_CHECK(adopt(publication, *std::move(found)));
  work_.missing = {};
  work_.ours = nullptr;
  return true;
}

/// A merge may reach the service right after it went back. It names chunks that were lost with the revision that it was
/// made from, and holds what is published again under the same id.
Result<RevisionId> PublicationEngine::find_hollow(const ConvergedState& converged) {
  if (converged.ours_is_hollow) return work_.ours->revision.id;
  if (!converged.holds_ours || converged.head == work_.ours->revision.id) return RevisionId();
  auto head = parts_.upstream.revision(converged.head);
  if (!head && is_transient(head.error().code)) return fail(head.error());
  if (!head) return RevisionId();  // it cannot be read here
  std::vector<RevisionTreePtr> parents;
  for (const auto& id : work_.ours->revision.parents) {
    auto parent = parts_.upstream.revision(id);
    if (!parent && is_transient(parent.error().code)) return fail(parent.error());
    if (parent) parents.push_back(*std::move(parent));
  }
  ChunkIds in_doubt;
  for (const auto& [path, entry] : work_.ours->tree.manifest().files) {
    auto has_same_chunks = [&path = path, &entry = entry](const RevisionTreePtr& tree) {
      auto there = tree->tree.manifest().files.find(path);
      return there != tree->tree.manifest().files.end() && there->second.chunks == entry.chunks;
    };
    auto there = (*head)->tree.manifest().files.find(path);
    if (there == (*head)->tree.manifest().files.end() || !there->second.same_content_and_mode(entry)) continue;
    if (has_same_chunks(*head) || std::any_of(parents.begin(), parents.end(), has_same_chunks)) continue;
    in_doubt.insert(there->second.chunks.begin(), there->second.chunks.end());
  }
  if (in_doubt.empty()) return RevisionId();
  // find_lost() remembers the chunks that it saw, so a chunk counts as lost only if all lookups miss it. A lagging
  // replica may well miss a different one each time.
  PLAYFS_TRY(auto lost, stored_.find_lost(converged.head, in_doubt));
  return lost.empty() ? RevisionId() : converged.head;
}

/// If reads lag behind writes, an acknowledged revision is merely not shown yet. So it counts as lost only after it was
/// looked for as long as a request may be late, and longer each time, so that a service that never shows anything is
/// not filled with copies. After kMostCopies no more are sent: it is only looked for, and the user may cancel. It never
/// returns to the stage by itself, however long that takes: it may appear whenever the reads catch up, and would be
/// merged into head after the user has discarded it.
Status PublicationEngine::plan_again(Publication& publication, const RevisionId& hollow) {
  const SteadyTime missed_at = parts_.clock.steady();  // the search may take minutes
  stored_.forget_all();
  if (publication.step != Step::posting && hollow.empty()) {  // `posting` has searched the log already
    PLAYFS_TRY(bool is_back, adopt_copy(publication));
    if (is_back) return {};
  }
  PLAYFS_TRY(int times, parts_.journal.times_planned_again(publication));
  const bool is_gone = work_.missing.missed(missed_at, parts_.late_arrival * (1 << std::min(times, kMostDoublings)));
  PLAYFS_TRY(bool is_hopeless, is_never_shown(publication));
  if (is_hopeless)
    return fail(
        ErrorCode::busy,
        fmt::format("the service acknowledged the revision {} times but never showed it: it does not store what it "
                    "receives, or its reads are stuck",
                    times + 1),
        "wait: playfs keeps looking for it; or playfs commit --cancel, to stage it again, though it may still appear");
  if (!is_gone) return fail(not_shown_yet());
  work_.missing = {};
  work_.joined.reset();
  work_.ours = nullptr;
  work_.trusts_head = false;
  log_event("service_lost_revision", publication);
  return parts_.journal.record_planning_again(publication, hollow);
}

}  // namespace playfs::publish
