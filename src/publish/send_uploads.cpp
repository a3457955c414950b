// The uploads of a plan: journalled first, then sent a window at a time.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "base/text.h"
#include "publish/frozen_bytes.h"
#include "publish/publication_engine.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::publish {

namespace {

/// Chunks that are journalled, or read and sent, at a time. In memory each takes at most a record's size.
constexpr std::size_t kJournalledAtOnce = 256;
constexpr std::size_t kSentAtOnce = 256;

}  // namespace

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

}  // namespace playfs::publish
