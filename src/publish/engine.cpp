// The order of the steps, and what each of them leaves behind. Making the revision's body is in prepare.cpp.
#include "publish/engine.h"

#include <set>

#include "base/await.h"
#include "base/text.h"
#include "publish/head.h"
#include "publish/rest.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::publish {

namespace {

/// Somebody else may set head back over and over; after so many rounds the publication rests before it goes on.
constexpr int kPatchesAtOnce = 3;
constexpr int kPageSize = 100;
constexpr int kMostPages = 50;

CommitResult so_far(const Publication& publication) {
  CommitResult result;
  result.outcome = Outcome::pending;
  result.revision = publication.revision;
  result.files_changed = publication.files_changed;
  result.writes_used = publication.writes;
  result.chunks_total = publication.chunks;
  return result;
}

ErrorCode code_named(std::string_view name) {
  for (int i = 0; i < static_cast<int>(ErrorCode::internal); ++i)
    if (name_of(static_cast<ErrorCode>(i)) == name) return static_cast<ErrorCode>(i);
  return ErrorCode::internal;
}

}  // namespace

Result<CommitResult> result_of(const Publication& publication) {
  CommitResult result = so_far(publication);
  result.chunks_done = publication.chunks;
  switch (publication.ending) {
    case Ending::nothing: result.outcome = Outcome::nothing; return result;
    case Ending::published: result.outcome = Outcome::published; return result;
    case Ending::branched: result.outcome = Outcome::branched; return result;
    case Ending::failed: break;
  }
  return fail(code_named(publication.error_code), publication.error_message, publication.error_hint);
}

Status Engine::recover() {
  PLAYFS_TRY(auto pending, parts_.stage.pending());
  if (!pending) return {};
  PLAYFS_TRY(auto front, parts_.journal.front());
  if (front && front->tx == pending->tx) return {};
  // The journal was lost, or made anew: whether this was sent is not known, so it is not sent again unasked.
  PLAYFS_CHECK(parts_.stage.thaw(pending->tx));
  parts_.site.events().event("commit_forgotten", {{"project", parts_.project.text()}, {"tx", pending->tx}});
  return {};
}

Status Engine::run(Publication& publication) {
  if (work_.tx != publication.tx) {
    work_ = {};
    work_.tx = publication.tx;
  }
  while (publication.step != Step::ended) {
    if (parts_.cancel.cancelled()) return fail(ErrorCode::interrupted, "the publication was interrupted");
    Status done = step(publication);
    if (done) continue;
    // Past `posting` the revision exists: from there a publication goes on until it is known where head stands.
    if (may_heal(done.error().code) || publication.step > Step::posting) return done;
    PLAYFS_CHECK(parts_.journal.record_thawing(publication, done.error()));
  }
  work_ = {};
  return {};
}

Status Engine::step(Publication& publication) {
  switch (publication.step) {
    case Step::queued: return freeze(publication);
    case Step::frozen:
    case Step::uploading: return prepare(publication);
    case Step::posting: return post(publication);
    case Step::posted:
    case Step::patching: return move_head(publication);
    case Step::settling: return settle(publication);
    case Step::thawing: return thaw(publication);
    case Step::ended: return {};
  }
  return fail(ErrorCode::corrupt, "the journal has a step that does not exist");
}

Status Engine::freeze(Publication& publication) {
  tell(publication, Phase::freezing);
  for (const auto& rules : parts_.stage.rules_needed()) {
    auto blob = await<content::Blob>([&](auto done) { parts_.site.blob(rules, parts_.cancel, std::move(done)); });
    if (!blob) return fail(blob.error().while_doing("read what is to be ignored"));
  }
  auto frozen = parts_.stage.freeze(publication.tx);
  // The rules that were read may be gone again from a cache that is cleared meanwhile.
  if (!frozen && frozen.error().code == ErrorCode::offline) return fail(frozen.error());
  // Nothing is frozen: whoever asked hears of it now rather than after a wait.
  if (!frozen) return parts_.journal.record_thawing(publication, frozen.error());
  if (!*frozen) return parts_.journal.record_ended(publication);
  auto changed = static_cast<std::uint32_t>((*frozen)->files.size() + (*frozen)->deletions.size());
  PLAYFS_CHECK(parts_.journal.record_frozen(publication, (*frozen)->base, changed));
  log_event("commit_started", publication, {{"files_changed", Json(std::uint64_t{changed})}});
  return {};
}

Status Engine::post(Publication& publication) {
  tell(publication, Phase::posting);
  if (!std::exchange(work_.is_first_post, false)) {
    // It may have been stored although the reply was lost, and the service may have forgotten the key since.
    PLAYFS_TRY(auto found, find_posted(publication));
    if (found) return adopt(publication, *std::move(found));
  }
  PLAYFS_TRY(auto body, wire::parse_json(publication.body));
  auto posted = await<Record>([&](auto done) {
    parts_.site.client().create_record("revisions", std::move(body), publication.key, parts_.cancel, std::move(done));
  });
  if (!posted) return fail(posted.error().while_doing("post the revision"));
  return adopt(publication, *std::move(posted));
}

/// The record of this publication's body, looked for among the revisions that are newer than its base.
Result<std::optional<Record>> Engine::find_posted(const Publication& publication) {
  std::set<std::string> cursors;
  std::string cursor;
  for (int pages = 0; pages < kMostPages; ++pages) {
    PLAYFS_TRY(auto page, await<wire::RecordPage>([&](auto done) {
                 parts_.site.client().list_records("revisions", kPageSize, cursor, parts_.cancel, std::move(done));
               }));
    for (auto& record : page.records) {
      if (record.id == publication.base.text()) return std::optional<Record>();
      auto revision = wire::decode_revision(record);
      if (revision && is_revision_of_body(*revision, publication.body)) return std::optional(std::move(record));
    }
    if (page.next_cursor.empty() || !cursors.insert(page.next_cursor).second) break;
    cursor = page.next_cursor;
  }
  return std::optional<Record>();
}

/// Takes a record for the revision that was posted, once it is seen to be that.
Status Engine::adopt(Publication& publication, Record record) {
  if (!record.fields.find("manifest")) {  // an answer with the system fields only
    PLAYFS_TRY(record, await<Record>([&](auto done) {
                 parts_.site.client().get_record("revisions", record.id, parts_.cancel, std::move(done));
               }));
  }
  PLAYFS_TRY(auto revision, wire::decode_revision(record));
  if (!is_revision_of_body(revision, publication.body))
    return fail(ErrorCode::corrupt, "the service answered with another revision than the one that was posted: " +
                                        escape_for_terminal(revision.id.text()));
  PLAYFS_CHECK(parts_.journal.record_posted(publication, revision.id));
  parts_.site.learn("revisions", record);
  return {};
}

Status Engine::bring_ours(const Publication& publication) {
  if (work_.ours) return {};
  auto ours = await<RevisionTreePtr>(
      [&](auto done) { parts_.site.revision(publication.revision, parts_.cancel, std::move(done)); });
  if (!ours) return fail(ours.error().while_doing("read back revision " + publication.revision.text()));
  work_.ours = *std::move(ours);
  return {};
}

Status Engine::move_head(Publication& publication) {
  tell(publication, Phase::verifying);
  PLAYFS_CHECK(bring_ours(publication));
  for (int patches = 0;; ++patches) {
    PLAYFS_TRY(auto view, look_at_head(parts_.site, parts_.project, publication.base, work_.ours, parts_.cancel));
    switch (view.position) {
      case Position::ours:
      case Position::built_on:
        PLAYFS_CHECK(parts_.journal.record_settling(publication, Ending::published));
        log_event("commit_published", publication, {{"head", view.head.text()}});
        return {};
      case Position::elsewhere:
        PLAYFS_CHECK(parts_.journal.record_settling(publication, Ending::branched));
        log_event("commit_branched", publication,
                  {{"head", view.head.text()}, {"base", publication.base.text()}, {"reason", "head moved"}});
        return {};
      case Position::base: break;
    }
    if (patches == kPatchesAtOnce)
      return fail(ErrorCode::busy, "head does not stay on the revision that was published");
    Status patched = patch_head(publication);
    if (patched) continue;
    // A lost reply says nothing: head is looked at again, since repeating blindly could undo somebody's move.
    auto code = patched.error().code;
    if (code == ErrorCode::unreachable || code == ErrorCode::timed_out || code == ErrorCode::protocol) continue;
    if (may_heal(code)) return patched;
    parts_.site.events().error("projects/" + parts_.project.text(), patched.error());
    PLAYFS_CHECK(parts_.journal.record_settling(publication, Ending::branched));
    log_event("commit_branched", publication,
              {{"head", view.head.text()}, {"base", publication.base.text()}, {"reason", patched.error().message}});
    return {};
  }
}

Status Engine::patch_head(Publication& publication) {
  PLAYFS_CHECK(parts_.journal.record_patching(publication));
  auto patched = await<Record>([&](auto done) {
    parts_.site.client().patch_record_now("projects", parts_.project.text(),
                                          JsonObject{{"latest_revision", publication.revision.text()}}, parts_.cancel,
                                          std::move(done));
  });
  if (!patched) return fail(patched.error().while_doing("move head to " + publication.revision.text()));
  return {};
}

Status Engine::settle(Publication& publication) {
  tell(publication, Phase::verifying);
  PLAYFS_TRY(bool pending, is_pending(publication));
  if (pending) {
    PLAYFS_CHECK(bring_ours(publication));
    PLAYFS_TRY(auto invalidations, parts_.stage.settle(publication.tx, work_.ours));
    if (parts_.settled) parts_.settled(invalidations);
  }
  return parts_.journal.record_ended(publication);
}

Status Engine::thaw(Publication& publication) {
  PLAYFS_TRY(bool pending, is_pending(publication));
  if (pending) PLAYFS_CHECK(parts_.stage.thaw(publication.tx));
  PLAYFS_CHECK(parts_.journal.record_ended(publication));
  auto failed = result_of(publication);
  parts_.site.events().error("projects/" + parts_.project.text(), failed.error());
  log_event("commit_failed", publication, {{"error", failed.error().message}});
  return {};
}

Result<bool> Engine::is_pending(const Publication& publication) const {
  PLAYFS_TRY(auto pending, parts_.stage.pending());
  return pending && pending->tx == publication.tx;
}

void Engine::tell(const Publication& publication, Phase phase, std::uint32_t chunks_done) const {
  CommitResult result = so_far(publication);
  result.chunks_done = phase > Phase::uploading ? publication.chunks : chunks_done;
  parts_.progress(phase, result);
}

void Engine::log_event(const char* kind, const Publication& publication, JsonObject more) const {
  JsonObject fields{{"project", parts_.project.text()}, {"tx", publication.tx}};
  if (!publication.revision.empty()) fields.set("revision", publication.revision.text());
  for (const auto& [name, value] : more) fields.set(name, value);
  parts_.site.events().event(kind, std::move(fields));
}

}  // namespace playfs::publish
