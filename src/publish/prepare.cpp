// From a frozen layer to the body of its revision, with all chunks that it refers to uploaded.
#include <algorithm>

#include <fmt/format.h>

#include "base/await.h"
#include "model/chunking.h"
#include "publish/engine.h"
#include "publish/rest.h"
#include "publish/uploads.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::publish {

namespace {

/// Plan and upload take turns until the plan needs nothing more: a second round is needed only where the ids that
/// the service gave are longer than presumed and leave less room.
constexpr int kMostRounds = 4;
/// The most chunks that are read to see whether they can be referred to instead of uploading content again.
constexpr std::size_t kMostCompared = 64;

std::size_t size_in_json(const std::string& id) { return json_size_of_string(id) - 2; }

}  // namespace

Status Engine::load(const Publication& publication) {
  if (!work_.frozen.tx.empty()) return {};
  PLAYFS_TRY(auto frozen, parts_.stage.pending());
  if (!frozen || frozen->tx != publication.tx)
    return fail(ErrorCode::corrupt, "what was to be published is no longer staged");
  auto base = parts_.stage.base();
  if ((base ? base->revision.id : RevisionId()) != frozen->base)
    return fail(ErrorCode::internal, "the work tree's base moved during a publication");

  PlanInput sizes_only;
  for (const auto& file : frozen->files)
    sizes_only.puts.push_back({.path = file.path,
                               .mode = file.mode,
                               .published = file.published,
                               .content = {},
                               .size = file.size,
                               .hash = file.hash});
  PLAYFS_CHECK(check_could_fit(sizes_only, WireSizes()));
  auto puts = std::move(sizes_only.puts);
  for (std::size_t i = 0; i < puts.size(); ++i) {
    if (puts[i].published) continue;
    PLAYFS_TRY(puts[i].content, parts_.stage.read_frozen(frozen->files[i]));
    if (ContentHash::of(puts[i].content) != puts[i].hash)
      return fail(ErrorCode::corrupt, fmt::format("{}: the staged bytes changed after they were frozen", puts[i].path));
  }
  work_.puts = std::move(puts);
  PLAYFS_CHECK(find_stored_by_others());
  work_.frozen = *std::move(frozen);
  return {};
}

/// Content that the base claims to have under another path: its chunks are read and compared, whoever uploaded them.
/// Reads are not scarce, and a claim is worth nothing.
Status Engine::find_stored_by_others() {
  auto base = parts_.stage.base();
  if (!base) return {};
  PLAYFS_TRY(auto known, parts_.journal.known_chunks());
  std::unordered_map<ContentHash, const FileEntry*> claimed;
  for (const auto& [path, entry] : base->tree.manifest().files)
    if (auto hash = ContentHash::parse(entry.hash_claim); hash && !entry.chunks.empty()) claimed.emplace(*hash, &entry);
  std::size_t compared = 0;
  for (const auto& put : work_.puts) {
    auto found = claimed.find(put.hash);
    if (put.published || found == claimed.end() || work_.stored_by_others.contents.contains(put.hash)) continue;
    const FileEntry& entry = *found->second;
    auto ours = cut_text(encode_content(put.content, encoding_for(put.content)));
    if (std::all_of(ours.begin(), ours.end(), [&](auto piece) { return known.contains(ContentHash::of(piece)); }))
      continue;
    if (compared + entry.chunks.size() > kMostCompared) continue;
    compared += entry.chunks.size();
    auto chunks = fetch_chunks(parts_.site.client(), entry.chunks, parts_.parallel_uploads, parts_.cancel);
    if (!chunks) {
      if (may_heal(chunks.error().code)) return fail(chunks.error().while_doing("read the chunks of " + put.path));
      continue;
    }
    std::string text;
    for (const auto& chunk : *chunks) text += chunk.content;
    if (decode_content(text, entry.encoding) != put.content) continue;
    for (const auto& chunk : *chunks) work_.fetched[chunk.id] = {ContentHash::of(chunk.content), chunk.content.size()};
    work_.stored_by_others.contents[put.hash] = {entry.encoding, entry.chunks};
  }
  return {};
}

Result<PlanInput> Engine::plan_input(const Publication& publication, const std::vector<Upload>& uploads) const {
  auto base = parts_.stage.base();
  PlanInput input;
  input.draft.project = parts_.project;
  if (!work_.frozen.base.empty()) input.draft.parents = {work_.frozen.base};
  input.draft.agent = publication.agent;
  input.draft.message = publication.message;
  input.draft.manifest = carried_forward(base ? base->tree.manifest() : Manifest(), publication.tx);
  if (work_.frozen.state) {
    PLAYFS_TRY(input.draft.state, wire::parse_json(*work_.frozen.state));
  } else if (base) {
    input.draft.state = base->revision.state;
  }
  input.base = work_.frozen.base;
  input.puts = work_.puts;
  input.deletions = work_.frozen.deletions;
  input.stored = work_.stored_by_others;
  PLAYFS_TRY(auto known, parts_.journal.known_chunks());
  std::size_t longest = 0;
  for (const auto& [hash, chunk] : known) {
    input.stored.chunks.emplace(hash, chunk.id);
    longest = std::max(longest, size_in_json(chunk.id.text()));
  }
  for (const auto& upload : uploads) longest = std::max(longest, size_in_json(upload.chunk.text()));
  if (longest == 0) longest = std::max(kUsualIdSize, size_in_json(parts_.project.text()));
  input.chunk_id_size = longest;
  return input;
}

Status Engine::prepare(Publication& publication) {
  tell(publication, Phase::planning);
  PLAYFS_CHECK(load(publication));
  for (int round = 0; round < kMostRounds; ++round) {
    PLAYFS_TRY(auto uploads, parts_.journal.uploads(publication));
    PLAYFS_CHECK(send(publication, uploads));
    PLAYFS_TRY(auto input, plan_input(publication, uploads));
    PLAYFS_TRY(auto plan, make_plan(std::move(input), WireSizes()));
    if (plan.uploads.empty()) return journal_body(publication, plan);
    PLAYFS_CHECK(journal_uploads(publication, plan, uploads.size()));
  }
  return fail(ErrorCode::internal, "the plan asks for ever more chunks");
}

Status Engine::journal_uploads(Publication& publication, const Plan& plan, std::size_t already) {
  std::vector<Upload> uploads;
  for (const auto& chunk : plan.uploads) {
    Upload upload;
    upload.number = static_cast<std::int64_t>(already + uploads.size());
    upload.key = parts_.random.uuid();
    upload.body = wire::to_text(wire::encode_chunk_draft(chunk));
    upload.text_hash = chunk.hash;
    upload.text_size = chunk.content.size();
    if (upload.body.size() > kRecordRoom) return fail(ErrorCode::internal, "a chunk was planned too large");
    uploads.push_back(std::move(upload));
  }
  return parts_.journal.record_uploads(publication, uploads);
}

Status Engine::send(Publication& publication, const std::vector<Upload>& uploads) {
  auto done = static_cast<std::uint32_t>(
      std::count_if(uploads.begin(), uploads.end(), [](const Upload& upload) { return !upload.chunk.empty(); }));
  if (done == uploads.size()) return {};
  tell(publication, Phase::uploading, done);
  return send_uploads(parts_.site, uploads, parts_.parallel_uploads, parts_.cancel,
                      [&](const std::vector<Upload>& stored) -> Status {
                        PLAYFS_CHECK(parts_.journal.record_acknowledged(publication, stored));
                        done += static_cast<std::uint32_t>(stored.size());
                        tell(publication, Phase::uploading, done);
                        return {};
                      });
}

Status Engine::journal_body(Publication& publication, const Plan& plan) {
  std::string body = wire::to_text(wire::encode_revision_draft(fill(plan, {})));
  if (body.size() > kRecordRoom) return fail(ErrorCode::internal, "the revision was planned too large");
  ChunkTexts texts = work_.fetched;
  PLAYFS_TRY(auto known, parts_.journal.known_chunks());
  for (const auto& [hash, chunk] : known) texts[chunk.id] = {hash, chunk.size};
  auto base = parts_.stage.base();
  const Manifest nothing{};
  PLAYFS_CHECK(check_revision_body(
      body,
      {.base = base ? base->tree.manifest() : nothing, .frozen = work_.frozen, .puts = work_.puts, .chunks = texts}));
  PLAYFS_CHECK(parts_.journal.record_posting(publication, parts_.random.uuid(), std::move(body)));
  work_.is_first_post = true;
  return {};
}

}  // namespace playfs::publish
