// From a frozen layer to the body of its revision, with all chunks that it refers to uploaded.
//
// Frozen bytes are read in place, as often as needed. Memory holds only the text that goes into the manifest, and a
// window of chunks.
#include <algorithm>
#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "model/chunking.h"
#include "model/repository.h"
#include "publish/chunk_reuse.h"
#include "publish/publication_engine.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::publish {

namespace {

/// Plan and upload alternate until the plan needs nothing more. A second round is needed only if a continuation names
/// the chunks of the first, or if the service's ids are longer than presumed and leave less room.
constexpr int kMostRounds = 6;
/// Chunks read at most, to find out whether they can be referred to instead of uploading content again.
constexpr std::size_t kMostCompared = 64;

/// Chunks that are journalled, or read and sent, at a time. In memory each takes at most a record's size.
constexpr std::size_t kJournalledAtOnce = 256;
constexpr std::size_t kSentAtOnce = 256;

std::size_t size_in_json(const std::string& id) { return json_size_of_string(id) - 2; }

/// A file of the frozen layer, which does not change until the publication has ended. A later process finds it by its
/// path.
class FrozenBytes final : public ByteSource {
 public:
  FrozenBytes(const WorkTreeLayers& layers, stage::FrozenFile file) : layers_(layers), file_(std::move(file)) {}
  [[nodiscard]] Result<std::string> read(std::uint64_t offset, std::size_t size) const override {
    return layers_.read_frozen(file_, offset, size);
  }
  [[nodiscard]] std::string lasting_name() const override { return file_.path; }

 private:
  const WorkTreeLayers& layers_;
  const stage::FrozenFile file_;
};

/// Makes the entry of an unpublished file comparable with those of other versions. Its hash is enough, unless one of
/// the others has text and no hash.
Status give_content(FileEntry& entry, const PutFile& put, std::initializer_list<const Manifest*> others) {
  entry.encoding = put.encoding;
  entry.inline_text.reset();
  // No other entry has this chunk; an empty list would mean an empty file.
  entry.chunks = {ChunkId("(staged) " + put.hash.hex())};
  for (const Manifest* other : others) {
    auto found = other->files.find(put.path);
    if (found == other->files.end() || !found->second.inline_text) continue;
    if (ContentHash::parse(found->second.hash_claim) || put.size > found->second.inline_text->size()) continue;
    PLAYFS_TRY(std::string bytes, put.content.all());
    entry.inline_text = encode_content(bytes, put.encoding);
    entry.chunks.clear();
    return {};
  }
  return {};
}

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

/// Decides what is published: the frozen layer on its own base, or, if head has moved on from there, merged with head
/// and based on it.
Status PublicationEngine::join_head(bool may_merge, bool asks) {
  RevisionId head = work_.frozen.base;
  Project project;
  if (asks) {
    PLAYFS_TRY(project, parts_.upstream.project());
    static_cast<void>(parts_.absences.check_head(project));  // starts its wait together with that for a missing base
    head = project.latest_revision;
  }
  std::optional<RevisionId> in_doubt;  // returned after other lookups, so that one wait is enough
  PLAYFS_CHECK(look_for_merge_parents(in_doubt));
  const RevisionId named = head;
  if (work_.joined == named && !in_doubt) return {};
  if (!head.empty() && (head != work_.frozen.base || !work_.trusts_head)) {
    PLAYFS_TRY(head, head_that_exists(head));
  }
  work_.joined.reset();  // an error below leaves an incomplete target
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
  PLAYFS_CHECK(take_in_fields());
  may_merge = may_merge && parts_.policy.whose != MergePolicy::Whose::none;
  RevisionTreePtr there;
  if (!head.empty() && head != base) {
    auto read = parts_.upstream.revision(head);
    if (!read && is_transient(read.error().code)) return fail(read.error());
    if (read) there = *std::move(read);
  }
  bool has_moved_on = base.empty() && there;
  bool holds_base = base.empty() || (head == base && work_.trusts_head);
  if (!head.empty() && head != base && !holds_base) {
    PLAYFS_TRY(auto holdings, Holdings::compare({head, base}, merging_.links()));
    holds_base = holdings.covers(head, base);
    // If head fell back, is on another line, or cannot be read, the log decides once the revision is in it.
    has_moved_on = there && holds_base && !holdings.covers(base, head);
  }
  for (const auto& parent : work_.frozen.merge_parents)
    if (!work_.gone_parents.contains(parent)) target.parents.push_back(parent);
  const RevisionTreePtr made_on = target.on;
  PLAYFS_TRY(RevisionTreePtr hollow, join_hollow(head));
  const RevisionTreePtr carried = target.on == made_on ? nullptr : target.on;
  work_.carries = carried != nullptr;
  BaseFate fate;
  if (!holds_base) {
    PLAYFS_TRY(fate, fate_of_base(project, there));
  }
  if (in_doubt) return Absences::not_shown(*in_doubt);
  work_.base_is_lost = fate.is_lost;
  work_.is_refilled = hollow && there;
  if (work_.is_refilled) PLAYFS_CHECK(refill(there, hollow));
  else if (fate.is_lost) PLAYFS_CHECK(join_survivor(fate.survivor, may_merge ? there : fate.survivor));
  else if (has_moved_on && may_merge) PLAYFS_CHECK(merge_with(snapshot_of(made_on), there));
  if (work_.beside && target.on == made_on && !fate.is_lost && !taken_in_by(*work_.beside).empty())
    PLAYFS_CHECK(branch_off_hollow());
  if (carried && target.on == carried && !fate.is_lost && !base.empty()) target.parents.push_back(base);
  target.parents = parents_of(target, head);
  PLAYFS_CHECK(find_stored_by_others());
  PLAYFS_CHECK(find_near());
  work_.joined = named;
  return {};
}

Status PublicationEngine::look_for_merge_parents(std::optional<RevisionId>& in_doubt) {
  std::set<RevisionId> gone;
  for (const auto& parent : work_.frozen.merge_parents) {
    PLAYFS_TRY(Absences::Presence presence, parts_.absences.look(parent));
    if (presence == Absences::Presence::not_shown) in_doubt = parent;
    if (presence == Absences::Presence::gone) gone.insert(parent);
  }
  for (const auto& id : gone)
    if (!work_.gone_parents.contains(id))
      parts_.events.event("service_lost_branch", {{"project", parts_.project.text()}, {"lost", id.text()}});
  if (gone != work_.gone_parents) work_.joined.reset();
  work_.gone_parents = std::move(gone);
  return {};
}

/// A lost one counts only if head holds it all the same. If not, its line is known here alone, if at all, and what it
/// brought is a change of the layer.
Result<std::vector<RevisionId>> PublicationEngine::merged_into_layer(const RevisionId& head) {
  std::vector<RevisionId> merged;
  for (const auto& parent : work_.frozen.merge_parents) {
    bool counts = !work_.gone_parents.contains(parent);
    if (!counts) {
      PLAYFS_TRY(auto holdings, Holdings::compare({head, parent}, merging_.links()));
      counts = holdings.covers(head, parent);
    }
    if (counts) merged.push_back(parent);
  }
  return merged;
}

/// The parents: what it is based on, then what was merged. The line that head is on comes first, so that following
/// first parents from head leads through former heads: that is the base or what it was merged with, unless head itself
/// was merged into the tree.
std::vector<RevisionId> PublicationEngine::parents_of(const Target& target, const RevisionId& head) const {
  std::vector<RevisionId> parents = target.parents;
  if (target.on) {
    std::erase(parents, target.on->revision.id);
    parents.insert(parents.begin(), target.on->revision.id);
  }
  auto first = std::find(parents.begin(), parents.end(), head);
  if (first != parents.end()) std::rotate(parents.begin(), first, first + 1);
  return parents;
}

namespace {
using Paths = std::set<std::string, std::less<>>;

/// What a manifest has besides content. This includes the fields of its files that are `published`; their content
/// counts as equal.
Snapshot fields_of(const Manifest& manifest, const Paths& published) {
  Snapshot fields;
  fields.manifest.extra = manifest.extra;
  fields.manifest.refused = manifest.refused;
  for (const auto& [path, entry] : manifest.files) {
    if (!published.contains(path)) continue;
    FileEntry& beside = fields.manifest.files[path];
    beside.inline_text.emplace();
    beside.extra = entry.extra;
  }
  return fields;
}

/// A put entry has its content from the layer, and its other fields from the manifest that it is put into.
void put_fields(Manifest& manifest, const std::string& path, JsonObject extra) {
  if (!extra.empty() || manifest.files.contains(path)) manifest.files[path].extra = std::move(extra);
}
}  // namespace

/// The stage has the files and the state of a merged branch; this adds the rest of its manifest and of its entries.
/// Where both sides changed the manifest, ours stands: that was a conflict then and has been resolved since. If the
/// merge base is unknown, the fields of both are kept, as the files were.
Status PublicationEngine::take_in_fields() {
  Target& target = work_.target;
  std::vector<RevisionId> lines;
  if (target.on) {
    target.from = target.on->tree.manifest();
    lines.push_back(target.on->revision.id);
  }
  if (work_.frozen.merge_parents.empty()) return {};
  Paths published;
  for (const auto& [path, entry] : target.from.files) published.insert(path);
  for (const auto& path : work_.frozen.deletions) published.erase(path);
  for (const PutFile& put : work_.puts) published.insert(put.path);
  for (const auto& parent : work_.frozen.merge_parents) {
    auto taken_in = parts_.upstream.revision(parent);
    if (!taken_in && is_transient(taken_in.error().code)) return fail(taken_in.error());
    if (!taken_in) continue;
    PLAYFS_TRY(CommonBase base, merging_.base_of(lines, parent));
    lines.push_back(parent);
    Snapshot before = fields_of(base.snapshot.manifest, published);
    // If our line deleted a file and it is put all the same, the file is theirs; so are its fields.
    std::erase_if(before.manifest.files, [&](const auto& each) { return !target.from.files.contains(each.first); });
    PLAYFS_TRY(Merge merge, merging_.merge(before, fields_of(target.from, published),
                                           fields_of((*taken_in)->tree.manifest(), published)));
    std::erase_if(merge.refused, [&](const RefusedEntry& each) { return target.from.files.contains(each.path); });
    target.from.extra = std::move(merge.extra);
    target.from.refused = std::move(merge.refused);
    for (auto& [path, file] : merge.files) put_fields(target.from, path, std::move(file.entry.extra));
  }
  return {};
}

/// False if the target already holds the layer, combined with others' changes to the same file.
bool PublicationEngine::comes_from_layer(const PutFile& put) const {
  if (work_.lost.empty()) return true;
  const FileEntry* there = work_.target.on->tree.file_at(put.path);
  return !put.published && there && there->hash_claim == put.hash.hex();
}

/// On conflicts the target stays as it was, but lists them. If the merge base is unknown, it stays too, and the log
/// decides.
Status PublicationEngine::merge_with(Snapshot base, const RevisionTreePtr& head) {
  Target& target = work_.target;
  Snapshot ours = snapshot_of(target.on);
  if (target.on && head && !work_.frozen.merge_parents.empty()) {
    // The layer itself is a merge, and head may hold the other side too: then they have both sides in common.
    PLAYFS_TRY(std::vector<RevisionId> lines, merged_into_layer(head->revision.id));
    lines.push_back(target.on->revision.id);
    PLAYFS_TRY(CommonBase common, merging_.base_of(lines, head->revision.id));
    if (!common.unknown.empty()) return {};
    base = std::move(common.snapshot);
  }
  Snapshot theirs = snapshot_of(head);
  ours.state = target.state;
  ours.manifest.extra = target.from.extra;
  ours.manifest.refused = target.from.refused;
  for (const auto& path : work_.frozen.deletions) ours.manifest.files.erase(path);
  std::map<std::string_view, const PutFile*> puts;
  for (const PutFile& put : work_.puts) {
    if (!comes_from_layer(put)) continue;
    puts[put.path] = &put;
    FileEntry& entry = ours.manifest.files[put.path];
    if (put.published) {
      entry = *put.published;
    } else {
      entry.hash_claim = put.hash.hex();
      entry.size_claim = put.size;
      PLAYFS_CHECK(give_content(entry, put, {&base.manifest, &theirs.manifest}));
      ours.own.insert_or_assign(put.path, put.content);
    }
    entry.mode = put.mode;
  }
  for (auto& [path, entry] : ours.manifest.files) {
    auto put = puts.find(path);
    auto from = target.from.files.find(path);
    if (from != target.from.files.end() && (put == puts.end() || !put->second->published))
      entry.extra = from->second.extra;
  }
  const RevisionTreePtr on = parts_.layers.base();
  PLAYFS_CHECK(
      add_what_came_back(parts_.upstream, parts_.journal, {.base = base, .ours = ours, .theirs = head, .on = on}));
  auto merge = merging_.merge(base, ours, theirs);
  if (!merge && is_transient(merge.error().code)) return fail(merge.error());
  if (!merge || !merge->conflicts.empty()) {
    if (merge)
      for (const auto& conflict : merge->conflicts) target.conflicts.push_back(conflict.path);
    return {};
  }

  Target merged;
  merged.on = head;
  merged.state = merge->state;
  merged.layer.tx = work_.frozen.tx;
  merged.layer.base = id_of(head);
  merged.parents = target.parents;
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
                .hash = ContentHash::of(*file.text),
                .encoding = encoding_for(*file.text)});
    } else if (there == theirs.manifest.files.end() || !there->second.same_content_and_mode(file.entry)) {
      auto put = puts.find(path);
      bool is_new = put != puts.end() && !put->second->published && file.entry.hash_claim == put->second->hash.hex();
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
  merged.from = std::move(theirs.manifest);
  merged.from.extra = std::move(merge->extra);
  merged.from.refused = std::move(merge->refused);
  for (auto& [path, file] : merge->files) put_fields(merged.from, path, std::move(file.entry.extra));
  target = std::move(merged);
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
  for (int round = 0; round < kMostRounds; ++round) {
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

/// Uses several transactions, so that more chunks do not take more memory. After a crash between them, the written ones
/// are sent, and the next plan has the others.
Status PublicationEngine::journal_uploads(Publication& publication, const Plan& plan) {
  PLAYFS_TRY(UploadTotals totals, parts_.journal.totals(publication));
  std::int64_t number = totals.chunks;
  std::vector<Upload> uploads;
  for (const PlannedChunk& planned : plan.uploads) {
    const PlannedText& text = plan.texts[planned.text];
    PLAYFS_TRY(ChunkDraft chunk, draft_of(plan, planned));
    Upload& upload = uploads.emplace_back();
    upload.number = number++;
    upload.key = parts_.random.uuid();
    upload.body = wire::to_text(wire::encode_chunk_draft(chunk));
    upload.text_hash = chunk.hash;
    upload.text_size = planned.size;
    if (upload.body.size() > kRecordRoom) return fail(ErrorCode::internal, "a planned chunk is too large");
    if (std::string frozen = text.bytes.lasting_name(); !frozen.empty() && frozen == chunk.path) {
      upload.recipe = {frozen,        chunk.revision, chunk.sequence,
                       text.encoding, planned.offset, ContentHash::of(upload.body)};
      upload.body = {};
    }
    if (uploads.size() == kJournalledAtOnce || &planned == &plan.uploads.back()) {
      PLAYFS_CHECK(parts_.journal.record_uploads(publication, uploads));
      uploads.clear();
    }
  }
  return {};
}

/// One id cannot name two texts. If an acknowledged id is already known for another text, the service is asked which it
/// has. That is the new one, if the service went back to an older state and reuses ids. Otherwise it lied, perhaps
/// about both, and neither counts as stored.
Status PublicationEngine::check_names(const Publication& publication, const std::vector<Upload>& acknowledged) {
  std::map<ChunkId, ContentHash> named;
  std::set<ChunkId> doubtful;
  for (const Upload& upload : acknowledged) {
    PLAYFS_TRY(auto known, parts_.journal.known_text(upload.chunk));
    const ContentHash& before = named.try_emplace(upload.chunk, known ? known->hash : upload.text_hash).first->second;
    if (before != upload.text_hash) doubtful.insert(upload.chunk);
  }
  for (const Upload& upload : acknowledged) {
    if (!doubtful.contains(upload.chunk)) continue;
    auto record = parts_.upstream.get("file_chunks", upload.chunk.text());
    if (!record && is_transient(record.error().code)) return fail(record.error());
    auto chunk = record ? wire::decode_chunk(*std::move(record)) : Result<FileChunk>(fail(record.error()));
    if (chunk && ContentHash::of(chunk->content) == upload.text_hash) continue;
    PLAYFS_CHECK(parts_.journal.record_lost_chunks(&publication, {{upload.chunk, parts_.random.uuid()}}));
    return fail(ErrorCode::corrupt, "the service returned a different chunk than the one sent: " +
                                        escape_for_terminal(upload.chunk.text()));
  }
  return {};
}

/// Sends all uploads that have no chunk yet, a window at a time.
Status PublicationEngine::send(Publication& publication) {
  PLAYFS_TRY(UploadTotals totals, parts_.journal.totals(publication));
  tell_uploading(publication, totals);
  log_event("commit_uploading", publication, {{"chunks", std::uint64_t{totals.chunks}}, {"bytes", totals.bytes}});
  for (std::int64_t from = 0;;) {
    PLAYFS_TRY(auto uploads, parts_.journal.unsent(publication, from, kSentAtOnce));
    if (uploads.empty()) return {};
    for (Upload& upload : uploads) PLAYFS_CHECK(make_body(publication, upload));
    from = uploads.back().number + 1;
    PLAYFS_CHECK(parts_.upstream.upload(uploads, [&](const std::vector<Upload>& acknowledged) -> Status {
      PLAYFS_CHECK(check_names(publication, acknowledged));
      PLAYFS_CHECK(parts_.journal.record_acknowledged(publication, acknowledged));
      for (const Upload& upload : acknowledged) {
        stored_.stored(upload.chunk);
        ++totals.chunks_done;
        totals.bytes_done += upload.text_size;
      }
      tell_uploading(publication, totals);
      return {};
    }));
  }
}

/// Rebuilds the body from its recipe, if it has one. The same key goes with the same bytes: if another version of this
/// program prints the body differently, it gets a key of its own. What was sent under the old key may be stored, as a
/// chunk that nothing refers to.
Status PublicationEngine::make_body(const Publication& publication, Upload& upload) {
  if (!upload.recipe) return {};
  const Recipe& recipe = *upload.recipe;
  auto file = std::find_if(work_.frozen.files.begin(), work_.frozen.files.end(),
                           [&](const stage::FrozenFile& each) { return each.path == recipe.path; });
  if (file == work_.frozen.files.end() || file->published)
    return fail(ErrorCode::corrupt, recipe.path + ": the journal has a chunk of it, but it is not staged");
  const Bytes bytes(std::make_shared<FrozenBytes>(parts_.layers, *file), file->size);
  if (recipe.offset + upload.text_size > text_size(bytes.size(), recipe.encoding))
    return fail(ErrorCode::corrupt, recipe.path + ": the journal has a chunk that is not in it");
  ChunkDraft chunk{recipe.revision, recipe.path, recipe.sequence, upload.text_hash, {}};
  PLAYFS_TRY(chunk.content, read_text(bytes, recipe.encoding, recipe.offset, upload.text_size));
  if (ContentHash::of(chunk.content) != upload.text_hash)
    return fail(ErrorCode::corrupt, recipe.path + ": the staged bytes changed after they were frozen");
  upload.body = wire::to_text(wire::encode_chunk_draft(chunk));
  ContentHash body_hash = ContentHash::of(upload.body);
  if (body_hash == recipe.body_hash) return {};
  upload.recipe->body_hash = body_hash;
  upload.key = parts_.random.uuid();
  return parts_.journal.record_rekeyed(publication, upload);
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
