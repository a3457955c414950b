// The sides of an integration: what the work tree and the frozen layer have, and how their content is read.
#include "publish/integration.h"

#include <set>
#include <utility>

#include "model/chunking.h"
#include "publish/conflicts.h"
#include "publish/lost_base.h"
#include "publish/staged_bytes.h"
#include "wire/json.h"

namespace playfs::publish {

namespace {

/// Each may hold a descriptor. Content beyond that is requested again, usually from the cache.
constexpr std::size_t kMostFetched = 64;  /// No record has more.
constexpr std::size_t kMostInline = 16 << 10;

/// An entry for own bytes, which are read in place; `where` distinguishes frozen bytes from present ones. Without a
/// hash it equals only itself.
FileEntry entry_of_own(const char* where, const std::string& path, FileMode mode) {
  FileEntry entry;
  entry.mode = mode;
  entry.chunks = {ChunkId(where + path)};
  return entry;
}

/// Adds what the entry is compared by. Other entries may have text and no hash.
Status tell_content(FileEntry& entry, const Bytes& bytes, bool by_text) {
  PLAYFS_TRY(auto examined, examine(bytes));
  entry.hash_claim = examined.hash.hex();
  if (!by_text || bytes.size() > kMostInline) return {};
  PLAYFS_TRY(std::string content, bytes.all());
  entry.chunks.clear();
  entry.encoding = examined.encoding;
  entry.inline_text = encode_content(content, entry.encoding);
  return {};
}

bool is_inline(const FileEntry* entry) { return entry && entry->inline_text; }

}  // namespace

Status Integration::add_local(Step& step) const {
  Snapshot& version = step.ours;
  version = snapshot_of(step.on);
  step.seen_state = stage_.staged_state();
  PLAYFS_TRY(auto changes, stage_.changes());
  PLAYFS_TRY(auto layer, stage_.pending());
  std::set<std::string> frozen;
  if (layer)
    for (const auto& file : layer->files) frozen.insert(file.path);
  for (const auto& change : changes) {
    version.manifest.files.erase(change.path);
    // First what it is, then its bytes: a change in between invalidates what was seen.
    const stage::Seen& seen = step.seen[change.path] = stage_.seen_at(change.path);
    if (!seen.inode) continue;
    // What lies at a deleted path is local-only, and no part of the merge. A frozen file that rules ignore since then
    // is listed as deleted too.
    if (change.kind == stage::ChangeKind::deleted && !frozen.contains(change.path)) continue;
    PLAYFS_TRY(auto attributes, stage_.attributes(seen.inode));
    if (attributes.kind != stage::Kind::file && attributes.kind != stage::Kind::symlink) continue;
    FileEntry& entry = version.manifest.files[change.path];
    const FileEntry* base = step.base.manifest.file_at(change.path);
    // Not `change.pending`: a file first written after the changes were listed would be taken for the frozen one.
    if (seen.as_frozen && base) {
      entry = *base;
    } else if (auto lower = stage_.lower_content(seen.inode)) {
      entry = *lower->entry;
    } else {
      const FileEntry* theirs = step.theirs.manifest.file_at(change.path);
      PLAYFS_TRY(Bytes bytes, staged_bytes(stage_, seen.inode));
      entry = entry_of_own("(staged) ", change.path, seen.mode);
      entry.size_claim = bytes.size();
      // If theirs did not change it, no comparison is needed.
      if (!same_content_and_mode(base, theirs))
        PLAYFS_CHECK(tell_content(entry, bytes, is_inline(base) || is_inline(theirs)));
      step.own.emplace(change.path, std::move(bytes));
    }
    entry.mode = seen.mode;
  }
  if (step.seen_state) {
    PLAYFS_TRY(version.state, wire::parse_json(*step.seen_state));
  }
  return {};
}

Status Integration::add_frozen(Step& step) const {
  Snapshot& version = step.base;
  version = snapshot_of(step.on);
  PLAYFS_TRY(auto layer, stage_.pending());
  if (!layer) return {};
  for (const auto& path : layer->deletions) version.manifest.files.erase(path);
  for (const auto& file : layer->files) {
    FileEntry& entry = version.manifest.files[file.path];
    if (file.published) {
      entry = *file.published;
    } else {
      entry = entry_of_own("(frozen) ", file.path, file.mode);
      entry.hash_claim = file.hash.hex();
      entry.size_claim = file.size;
      step.frozen.emplace(file.path, file);
    }
    entry.mode = file.mode;
  }
  if (layer->state) {
    PLAYFS_TRY(version.state, wire::parse_json(*layer->state));
  }
  return {};
}

Result<bool> Integration::add_what_is_back(Step& step) const {
  PLAYFS_TRY(auto lost, journal_.lost_base());
  if (!lost) return false;
  step.hold.reset();  // writers must not wait for the service
  auto tell = [&](const std::string& path, FileEntry& entry) {
    auto own = step.own.find(path);
    return own == step.own.end() || !entry.hash_claim.empty() ? Status() : tell_content(entry, own->second, false);
  };
  auto lacks_bytes = [&](const std::string& path) {
    auto seen = step.seen.find(path);
    return seen != step.seen.end() && seen->second.inode && stage_.lower_content(seen->second.inode);
  };
  return add_what_came_back(upstream_, journal_,
                            {.base = step.base,
                             .ours = step.ours,
                             .theirs = step.next,
                             .on = step.on,
                             .tell = tell,
                             .lacks_bytes = lacks_bytes});
}

Result<Bytes> Integration::read(Step& step, MergeSide side, const std::string& path, const FileEntry& entry) {
  if (auto content = entry.inline_content()) return Bytes(*std::move(content));
  if (auto own = step.own.find(path); side == MergeSide::ours && own != step.own.end()) return own->second;
  if (auto file = step.frozen.find(path); side == MergeSide::base && file != step.frozen.end()) {
    PLAYFS_TRY(std::string frozen, stage_.read_frozen(file->second));
    return Bytes(std::move(frozen));
  }
  std::string key = entry.hash_claim;
  for (const auto& chunk : entry.chunks) key += '\n' + chunk.text();
  if (auto known = fetched_.find(key); known != fetched_.end()) return known->second;
  step.hold.reset();  // writers must not wait for the service
  const Snapshot& of = side == MergeSide::base ? step.base : side == MergeSide::ours ? step.ours : step.theirs;
  PLAYFS_TRY(Bytes content, upstream_.content(of.near, path, entry));
  if (fetched_.size() < kMostFetched) fetched_.emplace(std::move(key), content);
  return content;
}

/// The hash of what is at a conflicted path without markers; nullopt if nothing is there.
Result<std::optional<ContentHash>> Integration::hash_of_left(Step& step, const Merge& merge, const std::string& path) {
  if (path.starts_with(stage::kStatePath)) return hash_of_state(merge.state, path);
  auto file = merge.files.find(path);
  if (file == merge.files.end()) return std::optional<ContentHash>();
  const FileEntry& entry = file->second.entry;
  if (auto known = known_hash(entry)) return known;
  MergeSide side = step.ours.manifest.file_at(path) ? MergeSide::ours : MergeSide::theirs;
  PLAYFS_TRY(Bytes content, read(step, side, path, entry));
  PLAYFS_TRY(auto examined, examine(content));
  return std::optional(examined.hash);
}

}  // namespace playfs::publish
