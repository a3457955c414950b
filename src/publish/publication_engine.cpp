// The order of the steps and what each of them leaves behind. prepare.cpp makes the revision's body.
#include "publish/publication_engine.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::publish {

namespace {

/// Revisions beside head that are remembered; the newest. Anyone may post any number of them.
constexpr std::size_t kMostLeftOut = 64;
/// Revisions that a look at what head has taken in may read.
constexpr std::size_t kMostLookedUp = 1024;

CommitResult so_far(const Publication& publication) {
  CommitResult result;
  result.outcome = Outcome::pending;
  result.tx = publication.tx;
  result.revision = publication.revision;
  result.files_changed = publication.files_changed;
  result.writes_used = publication.writes;
  result.chunks_total = publication.chunks;
  result.conflicts = publication.conflicts;
  return result;
}

}  // namespace

Result<CommitResult> result_of(const Publication& publication) {
  CommitResult result = so_far(publication);
  result.chunks_done = publication.chunks;
  switch (publication.ending) {
    case Ending::nothing: result.outcome = Outcome::nothing; return result;
    case Ending::published:
      result.merged_revision = publication.merged;
      result.outcome = publication.merged.empty() ? Outcome::published : Outcome::merged;
      result.conflicts.clear();
      return result;
    case Ending::branched: result.outcome = Outcome::branched; return result;
    case Ending::cancelled: result.outcome = Outcome::cancelled; return result;
    case Ending::failed: break;
  }
  return fail(code_named(publication.error_code), publication.error_message, publication.error_hint);
}

PublicationEngine::PublicationEngine(Parts parts)
    : parts_(std::move(parts)),
      merging_(parts_.merging),
      scan_({.project = parts_.project,
             .upstream = parts_.upstream,
             .journal = parts_.journal,
             .events = parts_.events,
             .clock = parts_.clock,
             .progress = [this](std::optional<LogReading> reading) { tell_reading(reading); }},
            parts_.limits),
      stored_(
          parts_.upstream,
          [this](const ChunkId& chunk) -> Result<std::optional<ContentHash>> {
            PLAYFS_TRY(auto known, parts_.journal.known_text(chunk));
            return known ? std::optional(known->hash) : std::nullopt;
          },
          parts_.clock, parts_.late_arrival),
      convergence_({.project = parts_.project,
                    .upstream = parts_.upstream,
                    .merging = merging_,
                    .journal = parts_.journal,
                    .scan = scan_,
                    .absences = parts_.absences,
                    .events = parts_.events,
                    .clock = parts_.clock,
                    .stored = stored_,
                    .policy = parts_.policy,
                    .late_arrival = parts_.late_arrival}) {}

bool PublicationEngine::can_be_cancelled(const Publication& publication) {
  return publication.step < Step::posting || publication.step == Step::thawing;
}

Status PublicationEngine::run(Publication& publication, const CancelToken& cancel) {
  if (work_.tx != publication.tx) {
    work_ = {};
    work_.tx = publication.tx;
    stored_.begin_anew();
  }
  while (publication.step != Step::ended) {
    if (parts_.cancel.cancelled() || cancel.cancelled())
      return fail(ErrorCode::interrupted, "the publication was interrupted");
    Status done = step(publication);
    if (done) continue;
    stored_.doubt_after_an_error();
    if (work_.joined != work_.frozen.base || work_.base_is_lost) work_.joined.reset();
    // From `posting` on the revision may exist. Only post() knows when it does not, and returns the layer itself.
    if (is_transient(done.error().code) || publication.step >= Step::posting) return done;
    PLAYFS_CHECK(give_back(publication, done.error()));
  }
  work_ = {};
  told_ = {};
  return {};
}

/// A commit whose revision is in the log without its chunks does not return to the stage: others merge it into head,
/// and the next commit would take its content for stored. The exception is content that is nowhere any more and cannot
/// be sent again (`corrupt`).
Status PublicationEngine::give_back(Publication& publication, const Error& error, bool in_doubt) {
  PLAYFS_TRY(bool is_in_log, has_hollow(publication));
  if (!is_in_log || error.code == ErrorCode::corrupt)
    return parts_.journal.record_thawing(publication, error, in_doubt);
  Error busy = error;
  busy.code = ErrorCode::busy;
  busy.message += "; its revision is in the log but incomplete, so its content is sent again";
  busy.hint = "wait: it continues once the service accepts it";
  return fail(std::move(busy));
}

Status PublicationEngine::step(Publication& publication) {
  switch (publication.step) {
    case Step::queued: return freeze(publication);
    case Step::frozen:
    case Step::uploading: return prepare(publication);
    case Step::posting: return post(publication);
    case Step::posted:
    case Step::patching: return converge(publication);
    case Step::settling: return settle(publication);
    case Step::thawing: return thaw(publication);
    case Step::ended: return {};
  }
  return fail(ErrorCode::corrupt, "the journal has an unknown step");
}

Status PublicationEngine::freeze(Publication& publication) {
  tell(publication, Phase::freezing);
  for (const auto& rules : parts_.layers.rules_needed()) {
    auto text = parts_.upstream.content(rules.revision, rules.path, *rules.entry);
    if (!text) return fail(text.error().while_doing("read the ignore rules"));
  }
  auto frozen = parts_.layers.freeze(publication.tx);
  // The rules just read may be gone again, if the cache was cleared meanwhile.
  if (!frozen && frozen.error().code == ErrorCode::offline) return fail(frozen.error());
  // Nothing was frozen, so the caller gets the error now rather than after a wait.
  if (!frozen) return parts_.journal.record_thawing(publication, frozen.error());
  if (!*frozen) return parts_.journal.record_ended(publication);
  auto changed = static_cast<std::uint32_t>((*frozen)->files.size() + (*frozen)->deletions.size());
  PLAYFS_CHECK(parts_.journal.record_frozen(publication, (*frozen)->base, changed));
  log_event("commit_started", publication, {{"files_changed", Json(std::uint64_t{changed})}});
  return {};
}

namespace {
/// The log cannot be read, and only the log tells whether the revision was stored.
Error in_doubt(const Error& error) {
  Error told = error.while_doing("unknown whether the revision was stored: it was sent, but not answered");
  told.hint =
      "wait: it continues once the service's revisions can be read; until then nothing is published twice or staged "
      "again";
  return told;
}
}  // namespace

Status PublicationEngine::post(Publication& publication) {
  tell(publication, Phase::posting);
  if (is_forgotten(publication)) return look_for_forgotten(publication);
  if (!std::exchange(work_.is_first_post, false)) {
    if (!work_.in_doubt_since) work_.in_doubt_since = parts_.clock.steady();  // perhaps sent by an earlier process
    // It may have been stored although the response was lost, and the service may have forgotten the key since.
    auto found = find_posted(publication);
    if (!found) return fail(in_doubt(found.error()));
    if (*found) return adopt(publication, **std::move(found));
    PLAYFS_TRY(bool can_be_posted, can_stand(publication));
    if (!can_be_posted) return plan_again(publication);
    work_.missing = {};
  }
  PLAYFS_TRY(auto body, wire::parse_json(publication.body));
  auto posted = parts_.upstream.create("revisions", body, publication.key);
  if (posted) return adopt(publication, *std::move(posted));
  auto error = posted.error().while_doing("post the revision");
  if (!is_transient(error.code)) return refused(publication, error);
  work_.in_doubt_since = parts_.clock.steady();
  return fail(std::move(error));
}

/// The service refuses the body. If an earlier request may have stored it, the layer returns to the stage only once
/// that request cannot arrive any more and the log does not have the revision. Otherwise a revision that appears later
/// would merge changes into head that the user has discarded meanwhile.
Status PublicationEngine::refused(Publication& publication, const Error& error) {
  if (work_.in_doubt_since) {
    auto found = find_posted(publication);
    if (!found) return fail(in_doubt(found.error()));
    if (*found) return adopt(publication, **std::move(found));
    if (parts_.clock.steady() - *work_.in_doubt_since < parts_.late_arrival)
      return fail(ErrorCode::busy,
                  error.message + "; an earlier attempt may still arrive, so playfs keeps looking for it");
  }
  return give_back(publication, error, work_.in_doubt_since.has_value());
}

/// The oldest record of this publication among the revisions newer than its base. Does not request the project, which
/// may be gone while the log is there.
Result<std::optional<Record>> PublicationEngine::find_posted(const Publication& publication) {
  PLAYFS_TRY(auto from, parts_.journal.watermark());
  if (auto base = parts_.layers.base(); base && (!from || base->revision.created_at < *from))
    from = base->revision.created_at;
  if (!from) {
    auto project = parts_.upstream.project();
    if (!project && is_transient(project.error().code)) return fail(project.error());
    from = project ? project->created_at : WallTime();
  }
  PLAYFS_CHECK(scan_.search(*from));
  std::vector<std::pair<WallTime, RevisionId>> oldest_first;
  for (const auto& [id, time] : scan_.found()) oldest_first.emplace_back(time, id);
  std::sort(oldest_first.begin(), oldest_first.end());
  for (const auto& [time, id] : oldest_first) {
    auto tree = parts_.upstream.revision(id);
    if (!tree && is_transient(tree.error().code)) return fail(tree.error());
    if (!tree || (*tree)->tree.manifest().tx != publication.tx) continue;
    // Get the record as stored; the tree has its continuation merged in.
    PLAYFS_TRY(auto record, parts_.upstream.get("revisions", id.text()));
    PLAYFS_TRY(bool is_its_own, is_revision_of(record, publication));
    if (is_its_own) return std::optional(std::move(record));
  }
  return std::optional<Record>();
}

/// Accepts a record as the revision that was posted, after checking that it is.
Status PublicationEngine::adopt(Publication& publication, Record record) {
  if (!record.fields.find("manifest")) {  // the response has only the system fields
    PLAYFS_TRY(record, parts_.upstream.get("revisions", record.id));
  }
  PLAYFS_TRY(bool is_its_own, is_revision_of(record, publication));
  if (!is_its_own) {
    // Nobody knows what became of ours.
    if (!work_.in_doubt_since) work_.in_doubt_since = parts_.clock.steady();
    return refused(publication, Error{ErrorCode::corrupt,
                                      "the service returned a different revision than the one posted: " +
                                          escape_for_terminal(record.id),
                                      {}});
  }
  PLAYFS_TRY(auto revision, wire::decode_revision(record));
  if (is_forgotten(publication)) {
    publication.agent = revision.agent;
    publication.message = revision.message;
  }
  PLAYFS_CHECK(parts_.journal.record_posted(publication, revision.id));
  parts_.upstream.learn("revisions", record);
  return {};
}

Status PublicationEngine::bring_ours(const Publication& publication) {
  if (work_.ours) return {};
  auto ours = parts_.upstream.revision(publication.revision);
  if (!ours) return fail(ours.error().while_doing("read back the published revision"));
  // The id is the service's claim, and may name another revision: files missing from that one would vanish from the
  // tree.
  if ((*ours)->revision.project != parts_.project || (*ours)->tree.manifest().tx != publication.tx)
    return fail(ErrorCode::not_found,
                "revision " + escape_for_terminal(publication.revision.text()) + " is not the one that was published");
  work_.ours = *std::move(ours);
  return {};
}

Status PublicationEngine::converge(Publication& publication) {
  tell(publication, Phase::verifying);
  Status here = bring_ours(publication);
  if (!here && here.error().code == ErrorCode::not_found) return plan_again(publication);
  PLAYFS_CHECK(here);
  RevisionTreePtr since = parts_.layers.base();
  auto before_write = [&] { return parts_.journal.record_patching(publication); };
  auto converged = convergence_.run(work_.ours, publication.may_merge, since, before_write);
  if (!converged) {
    if (is_transient(converged.error().code)) return fail(converged.error());
    // The project is gone, or its head may not be moved. The revision is stored, and no more can be done.
    parts_.events.error("projects/" + parts_.project.text(), converged.error());
    PLAYFS_CHECK(say({.revision = publication.revision,
                      .head = {},
                      .agent = publication.agent,
                      .author = publication.agent,
                      .conflicts = publication.conflicts}));
    log_event("commit_branched", publication, {{"reason", converged.error().message}});
    return parts_.journal.record_settling(publication, Ending::branched, {}, publication.conflicts);
  }
  PLAYFS_TRY(RevisionId hollow, find_hollow(*converged));
  if (converged->ours_is_gone || !hollow.empty()) return plan_again(publication, hollow);
  work_.missing = {};
  if (converged->holds_ours) {
    bool is_merged = converged->head != publication.revision && converged->head_is_automatic;
    PLAYFS_CHECK(pass_by(*converged));
    PLAYFS_CHECK(
        parts_.journal.record_settling(publication, Ending::published, is_merged ? converged->head : RevisionId()));
    log_event("commit_published", publication, {{"head", converged->head.text()}});
    return {};
  }
  std::vector<std::string> conflicts = publication.conflicts;
  std::string reason = converged->head_is_unread ? "head cannot be read here" : "conflict";
  for (const auto& left_out : converged->left_out) {
    if (left_out.revision != publication.revision || !conflicts.empty()) continue;
    if (!left_out.conflicts.empty()) reason = left_out.conflicts.front().reason;
    for (const auto& conflict : left_out.conflicts)
      if (!conflict.path.empty()) conflicts.push_back(conflict.path);
  }
  PLAYFS_CHECK(say({.revision = publication.revision,
                    .head = converged->head,
                    .agent = publication.agent,
                    .author = publication.agent,
                    .conflicts = conflicts}));
  PLAYFS_CHECK(pass_by(*converged));
  PLAYFS_CHECK(parts_.journal.record_settling(publication, Ending::branched, {}, conflicts));
  log_event("commit_branched", publication,
            {{"head", converged->head.text()}, {"base", publication.base.text()}, {"reason", reason}});
  return {};
}

/// If the service refuses the message, the commit still ends with its own outcome; the next reconcile tries again.
Status PublicationEngine::say(const Announcement& announcement) {
  Status said = announce(parts_.upstream, parts_.journal, parts_.project, announcement);
  if (said || is_transient(said.error().code)) return said;
  parts_.events.error("projects/" + parts_.project.text(), said.error().while_doing("announce the branch"));
  return {};
}

/// Journals the branches that were left out: once head is verified, the scan forgets all that is older, and no client
/// would name them. Sends no request.
Status PublicationEngine::note_left_out(const ConvergedState& converged) {
  PLAYFS_TRY(auto left_out, parts_.journal.left_out());
  for (const auto& each : converged.left_out) left_out.emplace(each.revision, each.created_at);
  while (left_out.size() > kMostLeftOut)
    left_out.erase(std::min_element(left_out.begin(), left_out.end(),
                                    [](const auto& a, const auto& b) { return a.second < b.second; }));
  return parts_.journal.record_left_out(left_out);
}

/// Drops notes of branches that head, or a later revision of the branch, holds by now. Looks no further back than
/// kMostLookedUp: a branch can be as old as the project. What is not found out stays noted.
Status PublicationEngine::drop_taken_in(const RevisionId& head) {
  PLAYFS_TRY(auto left_out, parts_.journal.left_out());
  std::vector<RevisionId> compared = {head};
  for (const auto& [id, time] : left_out)
    if (id != head) compared.push_back(id);
  if (head.empty() || left_out.empty() || compared == compared_with_head_) return {};
  std::size_t looked_up = 0;
  const Links near = {[&](const RevisionId& id) -> Result<std::optional<Link>> {
                        return looked_up++ < kMostLookedUp ? merging_.links().find(id) : std::optional<Link>();
                      },
                      merging_.links().confirm};
  PLAYFS_TRY(auto holdings, Holdings::compare(compared, near));
  std::erase_if(left_out, [&](const auto& item) {
    const RevisionId& id = item.first;
    auto is_later = [&](const RevisionId& other) { return holdings.covers(other, id) && !holdings.covers(id, other); };
    return holdings.covers(head, id) || std::any_of(compared.begin(), compared.end(), is_later);
  });
  PLAYFS_CHECK(parts_.journal.record_left_out(left_out));
  compared_with_head_ = std::move(compared);
  return {};
}

/// Verifying head forgets what is older. So if the log has an unannounced branch, the scan is only saved, and a
/// reconcile announces it: a commit does not announce others' branches, and their authors may be gone.
Status PublicationEngine::pass_by(const ConvergedState& converged) {
  PLAYFS_CHECK(note_left_out(converged));
  if (!converged.verified) return {};
  for (const auto& left_out : converged.left_out) {
    PLAYFS_TRY(bool is_said, parts_.journal.is_announced(left_out.revision));
    if (left_out.is_ours && !is_said) return scan_.save();
  }
  return scan_.verified(*converged.verified);
}

Result<ConvergedState> PublicationEngine::reconcile(const std::string& agent) {
  told_ = {};
  PLAYFS_TRY(ConvergedState converged, convergence_.run(nullptr, true, parts_.layers.base(), [] { return Status(); }));
  // Announce what clients posted that did not come back to do so.
  for (const auto& left_out : converged.left_out) {
    if (!left_out.is_ours) continue;
    std::vector<std::string> paths;
    for (const auto& conflict : left_out.conflicts) paths.push_back(conflict.path);
    PLAYFS_CHECK(say({.revision = left_out.revision,
                      .head = converged.head,
                      .agent = agent,
                      .author = left_out.agent,
                      .conflicts = std::move(paths)}));
  }
  PLAYFS_CHECK(note_left_out(converged));
  if (converged.verified) PLAYFS_CHECK(scan_.verified(*converged.verified));
  PLAYFS_CHECK(say_what_came_late());
  PLAYFS_TRY(auto branch, parts_.journal.branch());
  auto is_left_out = [&](const LeftOut& each) { return each.revision == branch; };
  if (!branch.empty() && !converged.head.empty() &&
      std::none_of(converged.left_out.begin(), converged.left_out.end(), is_left_out)) {
    PLAYFS_TRY(auto holdings, Holdings::compare({converged.head, branch}, merging_.links()));
    if (holdings.covers(converged.head, branch)) PLAYFS_CHECK(parts_.journal.record_no_branch());
  }
  Status dropped = drop_taken_in(converged.head);
  // It may have to read old revisions, which nothing waits for.
  if (!dropped && !is_transient(dropped.error().code)) return fail(dropped.error());
  return converged;
}

/// Reports commits that returned to the stage as failed, and whose revision is in the log after all.
Status PublicationEngine::say_what_came_late() {
  PLAYFS_TRY(auto given_back, parts_.journal.given_back_in_doubt());
  if (given_back.empty()) return {};
  for (const auto& [id, time] : scan_.found()) {
    auto tree = parts_.upstream.revision(id);
    if (!tree && is_transient(tree.error().code)) return fail(tree.error());
    if (!tree || !given_back.contains((*tree)->tree.manifest().tx)) continue;
    const std::string& tx = (*tree)->tree.manifest().tx;
    parts_.events.error(
        "projects/" + parts_.project.text(),
        Error{ErrorCode::already_exists,
              "a commit that had failed was published after all, as revision " + escape_for_terminal(id.text()),
              "playfs update, to bring it in; delete what you do not want, then commit"});
    parts_.events.event("commit_came_late", {{"project", parts_.project.text()}, {"tx", tx}, {"revision", id.text()}});
    PLAYFS_CHECK(parts_.journal.record_came_late(tx));
  }
  return {};
}

Status PublicationEngine::settle(Publication& publication) {
  tell(publication, Phase::verifying);
  PLAYFS_TRY(bool pending, is_pending(publication));
  if (pending) {
    Status here = bring_ours(publication);
    if (!here && here.error().code == ErrorCode::not_found) return plan_again(publication);
    PLAYFS_CHECK(here);
    PLAYFS_CHECK(parts_.layers.settle(publication.tx, work_.ours));
  }
  // An earlier attempt may have settled it only in memory. Until that is on disk, a restart depends on this row.
  PLAYFS_CHECK(parts_.layers.check_disk());
  return parts_.journal.record_ended(publication);
}

Status PublicationEngine::thaw(Publication& publication) {
  PLAYFS_TRY(bool pending, is_pending(publication));
  if (pending) PLAYFS_CHECK(parts_.layers.thaw(publication.tx));
  PLAYFS_CHECK(parts_.journal.record_ended(publication));
  auto ended = result_of(publication);
  if (ended) {
    log_event("commit_cancelled", publication);
    return {};
  }
  parts_.events.error("projects/" + parts_.project.text(), ended.error());
  log_event("commit_failed", publication, {{"error", ended.error().message}});
  return {};
}

Result<bool> PublicationEngine::is_pending(const Publication& publication) const {
  PLAYFS_TRY(auto pending, parts_.layers.pending());
  return pending && pending->tx == publication.tx;
}

void PublicationEngine::tell(const Publication& publication, Phase phase) {
  told_ = {};
  told_.phase = phase;
  told_.so_far = so_far(publication);
  if (phase > Phase::uploading) told_.so_far.chunks_done = publication.chunks;
  parts_.progress(told_);
}

void PublicationEngine::tell_reading(std::optional<LogReading> reading) const {
  if (told_.phase == Phase::idle) return;  // nobody waits for a reconcile
  Progress progress = told_;
  progress.reading = reading;
  parts_.progress(progress);
}

void PublicationEngine::tell_uploading(const Publication& publication, const UploadTotals& totals) const {
  Progress progress;
  progress.phase = Phase::uploading;
  progress.so_far = so_far(publication);
  progress.so_far.chunks_done = totals.chunks_done;
  progress.bytes_done = totals.bytes_done;
  progress.bytes_total = totals.bytes;
  parts_.progress(progress);
}

void PublicationEngine::log_event(const char* kind, const Publication& publication, JsonObject more) const {
  JsonObject fields{{"project", parts_.project.text()}, {"tx", publication.tx}};
  if (!publication.revision.empty()) fields.set("revision", publication.revision.text());
  for (const auto& [name, value] : more) fields.set(name, value);
  parts_.events.event(kind, std::move(fields));
}

}  // namespace playfs::publish
