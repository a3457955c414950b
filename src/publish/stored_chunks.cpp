#include "publish/stored_chunks.h"

#include <algorithm>

#include "wire/continuation.h"

namespace playfs::publish {

Result<ChunkIds> StoredChunks::find_missing(const ChunkIds& chunks) {
  const SteadyTime now = clock_.steady();
  std::vector<ChunkId> doubtful;
  for (const auto& chunk : chunks) {
    auto seen = seen_.find(chunk);
    if (seen == seen_.end() || now - seen->second >= kLately) doubtful.push_back(chunk);
  }
  return ask_for(doubtful);
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
    PLAYFS_TRY(auto gone, ask_for({at, end}));
    if (!gone.empty()) return ask_for({chunks.begin(), chunks.end()});
    there_.insert(at, end);
    at = end;
  }
  return ChunkIds();
}

Result<ChunkIds> StoredChunks::ask_for(const std::vector<ChunkId>& chunks) {
  if (chunks.empty()) return ChunkIds();
  auto missing = upstream_.missing_chunks(chunks);
  if (!missing) return fail(missing.error().while_doing("look whether the service has the chunks that it had"));
  ChunkIds gone(missing->begin(), missing->end());
  for (const auto& chunk : chunks) {
    if (gone.contains(chunk)) seen_.erase(chunk);
    else saw(chunk);
  }
  return gone;
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
