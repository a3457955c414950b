// From a frozen layer to the body of its revision, with all chunks that it refers to uploaded.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "model/chunking.h"
#include "publish/engine.h"
#include "publish/rest.h"
#include "publish/reuse.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::publish {

namespace {

/// Plan and upload take turns until the plan needs nothing more: a second round is needed only where a continuation
/// names the chunks of the first, or where the ids that the service gave are longer than presumed and leave less room.
constexpr int kMostRounds = 6;
/// The most chunks that are read to see whether they can be referred to instead of uploading content again.
constexpr std::size_t kMostCompared = 64;

std::size_t size_in_json(const std::string& id) { return json_size_of_string(id) - 2; }

}  // namespace

Status Engine::load(const stage::Frozen& frozen) {
  if (!work_.frozen.tx.empty()) return {};
  auto base = parts_.layers.base();
  if ((base ? base->revision.id : RevisionId()) != frozen.base)
    return fail(ErrorCode::internal, "the work tree's base moved during a publication");

  PlanInput sizes_only;
  for (const auto& file : frozen.files)
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
    PLAYFS_TRY(puts[i].content, parts_.layers.read_frozen(frozen.files[i]));
    if (ContentHash::of(puts[i].content) != puts[i].hash)
      return fail(ErrorCode::corrupt, fmt::format("{}: the staged bytes changed after they were frozen", puts[i].path));
  }
  work_.puts = std::move(puts);
  work_.frozen = frozen;
  return {};
}

/// Decides what is published: the frozen layer on its own base, or, where head has moved on from there, merged with
/// head and made on it.
Status Engine::join_head(bool may_merge, bool asks) {
  RevisionId head = work_.frozen.base;
  if (asks) {
    PLAYFS_TRY(Project project, parts_.upstream.project());
    head = project.latest_revision;
  }
  if (work_.joined == head) return {};
  work_.joined.reset();  // what an error leaves below is no target, of no head
  Target& target = work_.target;
  target = {};
  target.on = parts_.layers.base();
  target.layer = work_.frozen;
  target.puts = work_.puts;
  if (work_.frozen.state) {
    PLAYFS_TRY(target.state, wire::parse_json(*work_.frozen.state));
  } else if (target.on) {
    target.state = target.on->revision.state;
  }
  const RevisionId& base = work_.frozen.base;
  bool has_moved_on = false;
  if (may_merge && !head.empty() && head != base && parts_.policy.whose != MergePolicy::Whose::none) {
    auto there = parts_.upstream.revision(head);
    if (!there && may_heal(there.error().code)) return fail(there.error());
    if (there && !base.empty()) {
      PLAYFS_TRY(auto holdings, Holdings::compare({head, base}, merging_.links()));
      // Where head has fallen back, or stands elsewhere, this is for the log to decide once the revision is in it.
      has_moved_on = holdings.covers(head, base) && !holdings.covers(base, head);
    } else {
      has_moved_on = there.has_value();
    }
    if (has_moved_on) {
      PLAYFS_CHECK(merge_with(*there));
    }
  }
  target.parents = parents_of(target, head);
  PLAYFS_CHECK(find_stored_by_others());
  PLAYFS_CHECK(find_near());
  work_.joined = head;
  return {};
}

/// What it is made on, then what was taken in. The line that head is on comes first, so that following first parents
/// from head leads through what was head: that is the base, or what it was merged with, unless head itself was taken
/// in.
std::vector<RevisionId> Engine::parents_of(const Target& target, const RevisionId& head) const {
  std::vector<RevisionId> parents = work_.frozen.merge_parents;
  if (target.on) parents.insert(parents.begin(), target.on->revision.id);
  auto first = std::find(parents.begin(), parents.end(), head);
  if (first != parents.end()) std::rotate(parents.begin(), first, first + 1);
  return parents;
}

/// Where that leaves conflicts the target stays as it was, but says so.
Status Engine::merge_with(const RevisionTreePtr& head) {
  Target& target = work_.target;
  Snapshot base = snapshot_of(target.on);
  Snapshot ours = base;
  if (target.on && !work_.frozen.merge_parents.empty()) {
    // The layer is itself a merge, and head may hold the other side too: both are what the two have in common then.
    std::vector<RevisionId> lines = work_.frozen.merge_parents;
    lines.push_back(target.on->revision.id);
    PLAYFS_TRY(base, merging_.base_of(lines, head->revision.id));
  }
  ours.state = target.state;
  for (const auto& path : work_.frozen.deletions) ours.manifest.files.erase(path);
  std::map<std::string_view, const PutFile*> puts;
  for (const PutFile& put : work_.puts) {
    puts[put.path] = &put;
    FileEntry& entry = ours.manifest.files[put.path];
    if (put.published) {
      entry = *put.published;
    } else {
      entry.hash_claim = put.hash.hex();
      entry.size_claim = put.size;
      entry.encoding = encoding_for(put.content);
      entry.inline_text = encode_content(put.content, entry.encoding);
      entry.chunks.clear();
    }
    entry.mode = put.mode;
  }
  Snapshot theirs = snapshot_of(head);
  auto merge = merging_.merge(base, ours, theirs);
  if (!merge && may_heal(merge.error().code)) return fail(merge.error());
  if (!merge || !merge->conflicts.empty()) {
    if (merge)
      for (const auto& conflict : merge->conflicts)
        target.conflicts += (target.conflicts.empty() ? "" : "\n") + conflict.path;
    return {};
  }

  Target merged;
  merged.on = head;
  merged.state = merge->state;
  merged.layer.tx = work_.frozen.tx;
  merged.layer.base = head->revision.id;
  merged.layer.state = work_.frozen.state;
  auto put_file = [&](PutFile put) {
    merged.layer.files.push_back({.path = put.path,
                                  .mode = put.mode,
                                  .hash = put.hash,
                                  .size = put.size,
                                  .published = put.published,
                                  .spool = 0,
                                  .target = {}});
    merged.puts.push_back(std::move(put));
  };
  for (auto& [path, file] : merge->files) {
    auto there = theirs.manifest.files.find(path);
    if (file.text) {
      put_file({.path = path,
                .mode = file.entry.mode,
                .published = {},
                .content = *file.text,
                .size = file.text->size(),
                .hash = ContentHash::of(*file.text)});
    } else if (there == theirs.manifest.files.end() || !there->second.same_content_and_mode(file.entry)) {
      auto put = puts.find(path);
      bool is_new = put != puts.end() && !put->second->published && file.entry.inline_text;
      PutFile copy;
      if (is_new) copy = *put->second;
      copy.path = path;
      copy.mode = file.entry.mode;
      if (!is_new) copy.published = file.entry;
      put_file(std::move(copy));
    }
  }
  for (const auto& [path, entry] : theirs.manifest.files)
    if (!merge->files.contains(path)) merged.layer.deletions.push_back(path);
  target = std::move(merged);
  return {};
}

/// Content that the base claims to have under another path: its chunks are read and compared, whoever uploaded them.
/// Reads are not scarce, and a claim is worth nothing.
Status Engine::find_stored_by_others() {
  const RevisionTreePtr& base = work_.target.on;
  if (!base) return {};
  PLAYFS_TRY(auto known, parts_.journal.known_chunks());
  std::unordered_map<ContentHash, const FileEntry*> claimed;
  for (const auto& [path, entry] : base->tree.manifest().files)
    if (auto hash = ContentHash::parse(entry.hash_claim); hash && !entry.chunks.empty()) claimed.emplace(*hash, &entry);
  std::size_t compared = 0;
  for (const auto& put : work_.target.puts) {
    auto found = claimed.find(put.hash);
    if (put.published || found == claimed.end() || work_.stored_by_others.contents.contains(put.hash)) continue;
    const FileEntry& entry = *found->second;
    auto ours = cut_text(encode_content(put.content, encoding_for(put.content)));
    if (std::all_of(ours.begin(), ours.end(), [&](auto piece) { return known.contains(ContentHash::of(piece)); }))
      continue;
    if (compared + entry.chunks.size() > kMostCompared) continue;
    compared += entry.chunks.size();
    auto chunks = parts_.upstream.chunks(entry.chunks);
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

/// The chunks of what changed files were before, with their text.
Status Engine::find_near() {
  auto& near = work_.stored_by_others.near;
  near.clear();
  if (!work_.target.on) return {};
  const Manifest& base = work_.target.on->tree.manifest();
  NearChunks chunks(parts_.upstream, work_.stored_by_others);
  if (base.continuation) PLAYFS_CHECK(chunks.add(kContinuationPath, base.continuation->entry));
  for (const auto& put : work_.target.puts) {
    // What fits into one chunk costs one at the most.
    if (put.published || put.content.size() <= kMaxInlineText) continue;
    auto encoding = encoding_for(put.content);
    auto was = base.files.find(put.path);
    if (was != base.files.end()) {
      if (was->second.encoding == encoding) PLAYFS_CHECK(chunks.add(put.path, was->second));
      continue;
    }
    // Moved and changed, perhaps.
    for (const auto& path : work_.target.layer.deletions) {
      auto gone = base.files.find(path);
      if (gone != base.files.end() && gone->second.encoding == encoding)
        PLAYFS_CHECK(chunks.add(put.path, gone->second));
    }
  }
  for (const auto& [path, pieces] : near)
    for (const auto& piece : pieces) work_.fetched[piece.id] = {ContentHash::of(piece.text), piece.text.size()};
  return {};
}

Result<PlanInput> Engine::plan_input(const std::string& agent, const std::string& message,
                                     const std::vector<Upload>& uploads) const {
  const Target& target = work_.target;
  PlanInput input;
  input.draft.project = parts_.project;
  input.draft.parents = target.parents;
  input.draft.agent = agent;
  input.draft.message = message;
  input.draft.manifest = carried_forward(target.on ? target.on->tree.manifest() : Manifest(), target.layer.tx);
  input.draft.state = target.state;
  input.base = target.layer.base;
  input.puts = target.puts;
  input.deletions = target.layer.deletions;
  input.stored = work_.stored_by_others;
  PLAYFS_CHECK(add_known(parts_.journal, input.stored.pieces));
  std::size_t longest = 0;
  for (const auto& [hash, chunk] : input.stored.pieces.chunks) longest = std::max(longest, size_in_json(chunk.text()));
  for (const auto& upload : uploads) longest = std::max(longest, size_in_json(upload.chunk.text()));
  if (longest == 0) longest = std::max(kUsualIdSize, size_in_json(parts_.project.text()));
  input.chunk_id_size = longest;
  return input;
}

Status Engine::prepare(Publication& publication) {
  tell(publication, Phase::planning);
  if (work_.frozen.tx.empty()) {
    PLAYFS_TRY(auto frozen, parts_.layers.pending());
    if (!frozen || frozen->tx != publication.tx)
      return fail(ErrorCode::corrupt, "what was to be published is no longer staged");
    PLAYFS_CHECK(load(*frozen));
  }
  // Chunks go first, and head is asked for once they are there: they may take hours.
  bool asks = false;
  for (int round = 0; round < kMostRounds; ++round) {
    PLAYFS_TRY(auto uploads, parts_.journal.uploads(publication));
    PLAYFS_CHECK(send(publication, uploads));
    asks = asks || !uploads.empty();
    PLAYFS_CHECK(join_head(publication.may_merge && parts_.merges_first, asks));
    PLAYFS_TRY(auto input, plan_input(publication.agent, publication.message, uploads));
    PLAYFS_TRY(auto plan, make_plan(std::move(input), WireSizes()));
    if (plan.uploads.empty() && asks) return journal_body(publication, plan);
    asks = true;
    if (plan.uploads.empty()) continue;
    PLAYFS_CHECK(journal_uploads(publication, plan, uploads.size()));
  }
  return fail(ErrorCode::busy, "head moves faster than the plan is made");
}

Result<Plan> Engine::plan_only(const stage::Frozen& frozen, const std::string& agent, const std::string& message) {
  work_ = {};
  PLAYFS_CHECK(load(frozen));
  PLAYFS_CHECK(join_head(true, true));
  PLAYFS_TRY(auto input, plan_input(agent, message, {}));
  auto plan = make_plan(std::move(input), WireSizes());
  work_ = {};
  return plan;
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
  if (std::none_of(uploads.begin(), uploads.end(), [](const Upload& upload) { return upload.chunk.empty(); }))
    return {};
  std::vector<Upload> stored;  // since this call began
  tell_uploading(publication, uploads, stored);
  std::uint64_t bytes = 0;
  for (const auto& upload : uploads) bytes += upload.text_size;
  log_event("commit_uploading", publication, {{"chunks", std::uint64_t{uploads.size()}}, {"bytes", bytes}});
  return parts_.upstream.upload(uploads, [&](const std::vector<Upload>& acknowledged) -> Status {
    PLAYFS_CHECK(parts_.journal.record_acknowledged(publication, acknowledged));
    stored.insert(stored.end(), acknowledged.begin(), acknowledged.end());
    tell_uploading(publication, uploads, stored);
    return {};
  });
}

Status Engine::journal_body(Publication& publication, const Plan& plan) {
  std::string body = wire::to_text(wire::encode_revision_draft(fill(plan, {})));
  if (body.size() > kRecordRoom) return fail(ErrorCode::internal, "the revision was planned too large");
  ChunkTexts texts = work_.fetched;
  PLAYFS_TRY(auto known, parts_.journal.known_chunks());
  for (const auto& [hash, chunk] : known) texts[chunk.id] = {hash, chunk.size};
  const Target& target = work_.target;
  const Manifest nothing{};
  PLAYFS_CHECK(check_revision_body(body, {.base = target.on ? target.on->tree.manifest() : nothing,
                                          .frozen = target.layer,
                                          .puts = target.puts,
                                          .chunks = texts,
                                          .continuation = plan.continuation}));
  PLAYFS_CHECK(parts_.journal.record_posting(publication, parts_.random.uuid(), std::move(body), target.conflicts));
  work_.is_first_post = true;
  return {};
}

}  // namespace playfs::publish
