#include "publish/stored_chunks.h"

#include "wire/continuation.h"

namespace playfs::publish {

Result<ChunkIds> StoredChunks::find_missing(const ChunkIds& chunks) {
  const SteadyTime now = clock_.steady();
  std::vector<ChunkId> doubtful;
  for (const auto& chunk : chunks) {
    auto seen = seen_.find(chunk);
    if (seen == seen_.end() || now - seen->second >= kLately) doubtful.push_back(chunk);
  }
  if (doubtful.empty()) return ChunkIds();
  auto missing = upstream_.missing_chunks(doubtful);
  if (!missing) return fail(missing.error().while_doing("look whether the service has the chunks that it had"));
  ChunkIds gone(missing->begin(), missing->end());
  for (const auto& chunk : doubtful) {
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
