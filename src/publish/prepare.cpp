// From a frozen layer to the body of its revision, with all chunks that it refers to uploaded.
//
// Frozen bytes are read in place, as often as needed. Memory holds only the text that goes into the manifest, and a
// window of chunks.
#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "model/chunking.h"
#include "model/repository.h"
#include "publish/chunk_reuse.h"
#include "publish/frozen_bytes.h"
#include "publish/publication_engine.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::publish {

namespace {

/// Plan and upload alternate until the plan needs nothing more. A second round is needed only if a continuation names
/// the chunks of the first, or if the service's ids are longer than presumed and leave less room.
constexpr int kMostPlanRounds = 6;
/// Chunks read at most, to find out whether they can be referred to instead of uploading content again.
constexpr std::size_t kMostCompared = 64;

std::size_t size_in_json(const std::string& id) { return json_size_of_string(id) - 2; }
/// Nobody could read it afterwards: no tree shows a file that git takes for a repository's HEAD.
Status check_no_head_of_git(const PutFile& put) {
  if (!is_named_as_head(put.path)) return {};
  PLAYFS_TRY(std::string beginning, put.content.read(0, std::min<std::uint64_t>(put.size, kReadOfHead)));
  if (!is_content_of_head(put.mode, beginning)) return {};
  return fail(ErrorCode::refused_input, escape_for_terminal(put.path) + ": " + std::string(kWhyNoHead),
              "rename it, or list it in .playfsignore");
}

}  // namespace

Status PublicationEngine::load(const stage::Frozen& frozen) {
  if (!work_.frozen.tx.empty()) return {};
  auto base = parts_.layers.base();
  if (id_of(base) != frozen.base) return fail(ErrorCode::internal, "the work tree's base moved during a publication");

  PlanInput sizes_only;
  for (const auto& file : frozen.files)
    sizes_only.puts.push_back({.path = file.path,
                               .mode = file.mode,
                               .published = file.published,
                               .content = {},
                               .size = file.size,
                               .hash = file.hash,
                               .encoding = ContentEncoding::text});
  PLAYFS_CHECK(check_could_fit(sizes_only, WireSizes()));
  auto puts = std::move(sizes_only.puts);
  for (std::size_t i = 0; i < puts.size(); ++i) {
    PutFile& put = puts[i];
    if (put.published) {
      // It was fine under its old name. Reading it under this one reports whether it still is.
      if (is_named_as_head(put.path)) PLAYFS_CHECK(parts_.upstream.content(base, put.path, *put.published));
      continue;
    }
    put.content = Bytes(std::make_shared<FrozenBytes>(parts_.layers, frozen.files[i]), put.size);
    PLAYFS_TRY(Examined examined, examine(put.content));
    if (examined.hash != put.hash)
      return fail(ErrorCode::corrupt, fmt::format("{}: the staged bytes changed after they were frozen", put.path));
    put.encoding = examined.encoding;
    PLAYFS_CHECK(check_no_head_of_git(put));
  }
  work_.puts = std::move(puts);
  work_.frozen = frozen;
  return {};
}

/// Finds content that the base claims to have under another path. Its chunks are fetched and compared, whoever uploaded
/// them: reads are cheap, and a claim proves nothing.
Status PublicationEngine::find_stored_by_others() {
  const RevisionTreePtr& base = work_.target.on;
  if (!base) return {};
  std::unordered_map<ContentHash, const FileEntry*> claimed;
  for (const auto& [path, entry] : base->tree.manifest().files)
    if (auto hash = ContentHash::parse(entry.hash_claim); hash && !entry.chunks.empty()) claimed.emplace(*hash, &entry);
  std::size_t compared = 0;
  for (const auto& put : work_.target.puts) {
    auto found = claimed.find(put.hash);
    if (put.published || found == claimed.end() || work_.stored_by_others.contents.contains(put.hash)) continue;
    const FileEntry& entry = *found->second;
    if (compared + entry.chunks.size() > kMostCompared || put.size > kMostCompared * kMaxRecordSize) continue;
    PLAYFS_TRY(std::string bytes, put.content.all());
    PLAYFS_TRY(bool is_known, is_known_from_here(encode_content(bytes, put.encoding)));
    if (is_known) continue;
    compared += entry.chunks.size();
    auto chunks = parts_.upstream.chunks(entry.chunks);
    if (!chunks) {
      if (is_transient(chunks.error().code)) return fail(chunks.error().while_doing("read the chunks of " + put.path));
      continue;
    }
    std::string text;
    for (const auto& chunk : *chunks) text += chunk.content;
    if (decode_content(text, entry.encoding) != bytes) continue;
    for (const auto& chunk : *chunks) work_.fetched[chunk.id] = {ContentHash::of(chunk.content), chunk.content.size()};
    work_.stored_by_others.contents[put.hash] = {entry.encoding, entry.chunks};
  }
  return {};
}

/// Whether all chunks of the text, when chunked anew, were uploaded from here.
Result<bool> PublicationEngine::is_known_from_here(std::string_view text) const {
  for (auto piece : cut_text(text)) {
    PLAYFS_TRY(auto known, parts_.journal.known_chunk(ContentHash::of(piece)));
    if (!known) return false;
  }
  return true;
}

/// Finds the previous chunks of changed files, with their text.
Status PublicationEngine::find_near() {
  auto& near = work_.stored_by_others.near;
  near.clear();
  if (!work_.target.on) return {};
  const Manifest& base = work_.target.on->tree.manifest();
  NearChunks chunks(parts_.upstream, work_.stored_by_others);
  if (base.continuation) PLAYFS_CHECK(chunks.add(kContinuationPath, base.continuation->entry));
  for (const auto& put : work_.target.puts) {
    // What fits into one chunk costs at most one.
    if (put.published || put.size <= kMaxInlineText) continue;
    auto encoding = put.encoding;
    auto was = base.files.find(put.path);
    if (was != base.files.end()) {
      if (was->second.encoding == encoding) PLAYFS_CHECK(chunks.add(put.path, was->second));
      continue;
    }
    // It may have been moved and changed.
    for (const auto& path : work_.target.layer.deletions) {
      auto gone = base.files.find(path);
      if (gone != base.files.end() && gone->second.encoding == encoding)
        PLAYFS_CHECK(chunks.add(put.path, gone->second));
    }
  }
  for (const auto& [path, pieces] : near)
    for (const auto& piece : pieces) work_.fetched[piece.id] = {piece.hash, piece.size};
  return {};
}

Result<PlanInput> PublicationEngine::plan_input(const std::string& agent, const std::string& message,
                                                const KnownPieces& known) const {
  const Target& target = work_.target;
  PlanInput input;
  input.draft.project = parts_.project;
  input.draft.parents = target.parents;
  input.draft.agent = agent;
  input.draft.message = message;
  input.draft.manifest = carried_forward(target.from, target.layer.tx);
  input.draft.state = target.state;
  input.base = target.layer.base;
  input.puts = target.puts;
  input.deletions = target.layer.deletions;
  input.stored = work_.stored_by_others;
  input.stored.pieces = &known;
  PLAYFS_TRY(std::size_t longest, parts_.journal.longest_id());
  if (longest == 0) longest = std::max(kUsualIdSize, size_in_json(parts_.project.text()));
  input.chunk_id_size = longest;
  return input;
}

Status PublicationEngine::prepare(Publication& publication) {
  tell(publication, Phase::planning);
  if (work_.frozen.tx.empty()) {
    PLAYFS_TRY(auto frozen, parts_.layers.pending());
    if (!frozen || frozen->tx != publication.tx)
      return fail(ErrorCode::corrupt, "the changes to publish are no longer staged");
    PLAYFS_CHECK(load(*frozen));
  }
  // Upload chunks first, which may take hours, and request head after that.
  bool asks = false;
  for (int round = 0; round < kMostPlanRounds; ++round) {
    PLAYFS_TRY(UploadTotals totals, parts_.journal.totals(publication));
    if (totals.chunks_done < totals.chunks) PLAYFS_CHECK(send(publication));
    asks = asks || totals.chunks > 0;
    PLAYFS_CHECK(join_head(publication.may_merge && parts_.merges_first, asks));
    PLAYFS_TRY(auto known, KnownFromHere::open(parts_.journal));
    PLAYFS_TRY(auto input, plan_input(publication.agent, publication.message, known));
    PLAYFS_TRY(auto plan, make_plan(std::move(input), WireSizes()));
    if (plan.uploads.empty() && asks) {
      // The base may be back since; then what it held is nobody's change.
      if (work_.base_is_lost) {
        PLAYFS_TRY(Absences::Presence base, parts_.absences.look(work_.frozen.base));
        if (base == Absences::Presence::there) {
          work_.joined.reset();
          continue;
        }
      }
      PLAYFS_TRY(bool all_there, has_all_chunks(publication, plan));
      if (all_there) return journal_body(publication, plan);
      continue;
    }
    asks = true;
    if (plan.uploads.empty()) continue;
    PLAYFS_CHECK(journal_uploads(publication, plan));
  }
  return fail(ErrorCode::busy, "head moves faster than the commit can be planned");
}

Result<Plan> PublicationEngine::plan_only(const stage::Frozen& frozen, const std::string& agent,
                                          const std::string& message) {
  work_ = {};
  PLAYFS_CHECK(load(frozen));
  PLAYFS_CHECK(join_head(true, true));
  PLAYFS_TRY(auto known, KnownFromHere::open(parts_.journal));
  PLAYFS_TRY(auto input, plan_input(agent, message, known));
  auto plan = make_plan(std::move(input), WireSizes());
  work_ = {};
  return plan;
}

Result<std::optional<ChunkText>> PublicationEngine::text_of(const ChunkId& chunk) const {
  if (auto fetched = work_.fetched.find(chunk); fetched != work_.fetched.end()) return std::optional(fetched->second);
  PLAYFS_TRY(auto known, parts_.journal.known_text(chunk));
  return known ? std::optional(ChunkText{known->hash, known->size}) : std::nullopt;
}

Status PublicationEngine::journal_body(Publication& publication, const Plan& plan) {
  std::string body = wire::to_text(wire::encode_revision_draft(fill(plan, {})));
  if (body.size() > kRecordRoom) return fail(ErrorCode::internal, "the planned revision is too large");
  const FindChunkText texts = [this](const ChunkId& chunk) { return text_of(chunk); };
  const Target& target = work_.target;
  PLAYFS_CHECK(check_revision_body(body, {.base = target.from,
                                          .frozen = target.layer,
                                          .puts = target.puts,
                                          .chunks = texts,
                                          .continuation = plan.continuation}));
  // If only the revision was lost, planning again yields the same body. It is sent under the same key the first time,
  // since a service that has the revision after all answers with it. If that did not help, it gets a new key.
  PLAYFS_TRY(int times, parts_.journal.times_planned_again(publication));
  bool is_repeated = body == publication.body && times < 2;
  std::string key = is_repeated ? publication.key : parts_.random.uuid();
  PLAYFS_CHECK(parts_.journal.record_posting(publication, std::move(key), std::move(body), target.conflicts));
  work_.is_first_post = !is_repeated;
  return {};
}

}  // namespace playfs::publish
