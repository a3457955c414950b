#include "publish/chunk_reuse.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace playfs::publish {

namespace {
/// They are in the cache if the files were read before.
constexpr std::size_t kMostRead = 2048;
/// Only hashes of their texts are kept.
constexpr std::size_t kReadAtOnce = 128;
}  // namespace

Result<KnownFromHere> KnownFromHere::open(Journal& journal) {
  PLAYFS_TRY(auto sizes, journal.known_sizes());
  return KnownFromHere(journal, std::move(sizes));
}

Result<std::optional<ChunkId>> KnownFromHere::find(const ContentHash& text) const {
  PLAYFS_TRY(auto known, journal_->known_chunk(text));
  return known ? std::optional(std::move(known->id)) : std::nullopt;
}

Status NearChunks::add(const std::string& path, const FileEntry& entry) {
  if (entry.chunks.empty() || read_ + entry.chunks.size() > kMostRead) return {};
  read_ += entry.chunks.size();
  std::vector<StoredPiece> pieces;
  for (std::size_t at = 0; at < entry.chunks.size(); at += kReadAtOnce) {
    auto first = entry.chunks.begin() + static_cast<std::ptrdiff_t>(at);
    std::vector<ChunkId> ids(first,
                             first + static_cast<std::ptrdiff_t>(std::min(kReadAtOnce, entry.chunks.size() - at)));
    auto chunks = upstream_.chunks(ids);
    if (!chunks && is_transient(chunks.error().code))
      return fail(chunks.error().while_doing("read the chunks of " + path));
    if (!chunks) return {};
    for (auto& chunk : *chunks) pieces.push_back(stored_piece(chunk.id, chunk.content));
  }
  auto& near = stored_.near[path];
  near.insert(near.end(), pieces.begin(), pieces.end());
  return {};
}

}  // namespace playfs::publish
