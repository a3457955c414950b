#include "publish/stored_chunks.h"

#include <algorithm>

#include "wire/continuation.h"

namespace playfs::publish {

Result<ChunkIds> StoredChunks::find_missing(const ChunkIds& chunks) {
  const SteadyTime now = clock_.steady();
  std::vector<ChunkId> doubtful;
  for (const auto& chunk : chunks) {
    auto seen = seen_.find(chunk);
    bool was_acknowledged = seen != seen_.end() && now - seen->second < kLately;
    if (!was_acknowledged && !found_.contains(chunk)) doubtful.push_back(chunk);
  }
  ChunkIds there, gone;
  PLAYFS_CHECK(ask_for(doubtful, there, gone));
  return gone;
}

Result<ChunkIds> StoredChunks::find_lost(const RevisionId& revision, const ChunkIds& chunks) {
  if (there_with_ != revision) there_.clear();
  there_with_ = revision;
  std::vector<ChunkId> in_order;
  for (const auto& chunk : stored_)
    if (chunks.contains(chunk)) in_order.push_back(chunk);
  std::vector<ChunkId> asked;
  const std::size_t count = in_order.size();
  for (std::size_t i = 0; i < count; ++i)
    if (i < kSideBySide || i + kSideBySide >= count || i == count / 3 || i == count * 2 / 3)
      asked.push_back(in_order[i]);
  const ChunkIds has_witnesses(in_order.begin(), in_order.end());
  for (const auto& chunk : chunks)
    if (!has_witnesses.contains(chunk)) asked.push_back(chunk);
  std::erase_if(asked, [&](const ChunkId& chunk) { return there_.contains(chunk); });
  for (auto at = asked.begin(); at != asked.end();) {
    auto end = at + std::min<std::ptrdiff_t>(kSideBySide, asked.end() - at);
    ChunkIds gone;
    PLAYFS_CHECK(ask_for({at, end}, there_, gone));
    if (!gone.empty()) {
      PLAYFS_CHECK(ask_for({chunks.begin(), chunks.end()}, there_, gone));
      return gone;
    }
    at = end;
  }
  return ChunkIds();
}

bool StoredChunks::is_gone(const ChunkId& chunk) const {
  auto missing = missing_.find(chunk);
  return missing != missing_.end() && missing->second.is_gone;
}

Status StoredChunks::ask_for(const std::vector<ChunkId>& chunks, ChunkIds& there, ChunkIds& gone) {
  if (chunks.empty()) return {};
  Status judged;
  Status asked = upstream_.look_for_chunks(chunks, [&](const ChunkId& chunk, const Record* found) {
    auto answer = found ? has_text_of(chunk, *found) : Result<bool>(false);
    if (!answer) {
      judged = fail(answer.error());
      return;
    }
    const bool is_there = *answer;
    (is_there ? there : gone).insert(chunk);
    if (is_there) {
      found_.insert(chunk);
      missing_.erase(chunk);
    } else {
      Missing& missing = missing_[chunk];
      missing.is_gone = missing.doubt.missed(clock_.steady(), late_arrival_);
      seen_.erase(chunk);
      found_.erase(chunk);
    }
  });
  if (!asked) return fail(asked.error().while_doing("check that the service still has its chunks"));
  return judged;
}

Result<bool> StoredChunks::has_text_of(const ChunkId& chunk, const Record& found) const {
  PLAYFS_TRY(auto sent, sent_as_(chunk));
  const Json* content = found.fields.find("content");
  return !sent || (content && content->string() && ContentHash::of(*content->string()) == *sent);
}

Result<Manifest> with_continuation(Manifest planned, std::string_view continuation) {
  if (!planned.continuation || continuation.empty()) return planned;
  planned.continuation->is_read = false;
  PLAYFS_CHECK(wire::read_continuation(planned, continuation));
  return planned;
}

ChunkIds chunks_of(const Manifest& manifest) {
  ChunkIds chunks;
  for (const auto& [path, entry] : manifest.files) chunks.insert(entry.chunks.begin(), entry.chunks.end());
  if (manifest.continuation)
    chunks.insert(manifest.continuation->entry.chunks.begin(), manifest.continuation->entry.chunks.end());
  return chunks;
}

}  // namespace playfs::publish
