#include "publish/reuse.h"

#include <utility>

#include "publish/rest.h"

namespace playfs::publish {

namespace {
/// They are on disk where the files were read before.
constexpr std::size_t kMostRead = 2048;
}  // namespace

Status add_known(Journal& journal, KnownPieces& pieces) {
  PLAYFS_TRY(auto known, journal.known_chunks());
  for (const auto& [hash, chunk] : known) {
    pieces.chunks.emplace(hash, chunk.id);
    pieces.sizes.insert(chunk.size);
  }
  return {};
}

Status NearChunks::add(const std::string& path, const FileEntry& entry) {
  if (entry.chunks.empty() || read_ + entry.chunks.size() > kMostRead) return {};
  read_ += entry.chunks.size();
  auto chunks = upstream_.chunks(entry.chunks);
  if (!chunks && may_heal(chunks.error().code)) return fail(chunks.error().while_doing("read the chunks of " + path));
  if (!chunks) return {};
  for (auto& chunk : *chunks) stored_.near[path].push_back({chunk.id, std::move(chunk.content)});
  return {};
}

}  // namespace playfs::publish
