#include "publish/merging.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "model/chunking.h"
#include "publish/rest.h"

namespace playfs::publish {

namespace {

/// Criss-cross merges of criss-cross merges: beyond, one of several bases has to do.
constexpr int kDeepest = 3;
constexpr std::size_t kMostBases = 4;

/// Not a revision's: what the merge of several would have as id.
const RevisionId& virtual_id() {
  static const RevisionId id(std::string("\0merge", 6));
  return id;
}

FileEntry inline_entry(const MergedFile& file) {
  FileEntry entry = file.entry;
  entry.chunks.clear();
  entry.encoding = ContentEncoding::text;
  entry.hash_claim = ContentHash::of(*file.text).hex();
  entry.size_claim = file.text->size();
  entry.inline_text = *file.text;
  return entry;
}

}  // namespace

Snapshot snapshot_of(const RevisionTreePtr& revision) {
  if (!revision) return {};
  return {revision, revision->tree.manifest(), revision->revision.state, {}};
}

Snapshot snapshot_of(const Merge& merge, const Snapshot& ours) {
  Snapshot snapshot;
  snapshot.near = ours.near;
  for (const auto& [path, file] : merge.files)
    snapshot.manifest.files.emplace(path, file.text ? inline_entry(file) : file.entry);
  snapshot.manifest.refused = merge.refused;
  snapshot.manifest.extra = merge.extra;
  snapshot.state = merge.state;
  return snapshot;
}

Result<std::optional<Link>> Merging::find_link(const RevisionId& id) {
  if (auto known = links_.find(id); known != links_.end()) return std::optional(known->second);
  auto revision = upstream_.revision(id);
  if (!revision) {
    // What nobody can read has nothing that could be lost.
    if (may_heal(revision.error().code)) return fail(revision.error());
    return std::optional<Link>();
  }
  Link link = link_of(**revision);
  links_.emplace(id, link);
  return std::optional(std::move(link));
}

Result<Merge> Merging::merge(const Snapshot& base, const Snapshot& ours, const Snapshot& theirs,
                             const MergeLabels& labels) {
  auto read = [&](MergeSide side, const std::string& path, const FileEntry& entry) -> Result<std::string> {
    if (auto content = entry.inline_content()) return *std::move(content);
    const Snapshot& of = side == MergeSide::base ? base : side == MergeSide::ours ? ours : theirs;
    if (auto own = of.own.find(path); own != of.own.end()) return own->second.all();
    return upstream_.content(of.near, path, entry);
  };
  return merge(base, ours, theirs, labels, read);
}

Result<Merge> Merging::merge(const Snapshot& base, const Snapshot& ours, const Snapshot& theirs,
                             const MergeLabels& labels, const ReadEntry& read) {
  return merge_({base.manifest, base.state}, {ours.manifest, ours.state}, {theirs.manifest, theirs.state}, read,
                labels);
}

Result<std::vector<RevisionId>> Merging::bases_of(const std::vector<RevisionId>& merged, const RevisionId& other) {
  if (merged.size() == 1) return find_merge_bases(merged.front(), other, find_);
  // As if they had been merged already, just now.
  const Link together{virtual_id(), WallTime{std::numeric_limits<std::int64_t>::max()}, merged, {}};
  FindLink with_it = [&](const RevisionId& id) -> Result<std::optional<Link>> {
    if (id == together.id) return std::optional(together);
    return find_(id);
  };
  return find_merge_bases(together.id, other, with_it);
}

Result<Snapshot> Merging::base_of(const std::vector<RevisionId>& merged, const RevisionId& other) {
  PLAYFS_TRY(auto bases, bases_of(merged, other));
  return virtual_base(std::move(bases), 0);
}

Result<Snapshot> Merging::virtual_base(std::vector<RevisionId> bases, int depth) {
  if (bases.empty()) return Snapshot();
  std::reverse(bases.begin(), bases.end());  // the oldest first
  PLAYFS_TRY(auto first, upstream_.revision(bases.front()));
  Snapshot snapshot = snapshot_of(first);
  std::vector<RevisionId> merged = {bases.front()};
  for (std::size_t i = 1; i < std::min(bases.size(), kMostBases) && depth < kDeepest; ++i) {
    PLAYFS_TRY(auto below, bases_of(merged, bases[i]));
    PLAYFS_TRY(Snapshot base, virtual_base(std::move(below), depth + 1));
    PLAYFS_TRY(auto other, upstream_.revision(bases[i]));
    PLAYFS_TRY(Merge merge, this->merge(base, snapshot, snapshot_of(other), {"one", "other"}));
    // A base with markers in it is equal to neither side where they were in conflict, which is as it should be.
    for (const auto& conflict : merge.conflicts)
      if (conflict.kind == ConflictKind::text) merge.files[conflict.path].text = conflict.marked;
    snapshot = snapshot_of(merge, snapshot);
    merged.push_back(bases[i]);
  }
  return snapshot;
}

Result<Merging::Joined> Merging::join(const std::vector<RevisionId>& revisions,
                                      std::map<RevisionId, std::vector<Conflict>>& conflicted) {
  PLAYFS_TRY(auto first, upstream_.revision(revisions.front()));
  Joined joined{snapshot_of(first), {revisions.front()}};
  for (std::size_t i = 1; i < revisions.size(); ++i) {
    PLAYFS_TRY(Snapshot base, base_of(joined.revisions, revisions[i]));
    PLAYFS_TRY(auto other, upstream_.revision(revisions[i]));
    auto merge = this->merge(base, joined.snapshot, snapshot_of(other));
    if (!merge && may_heal(merge.error().code)) return fail(merge.error());
    if (!merge) {  // content that cannot be read cannot be merged
      conflicted[revisions[i]] = {{"", ConflictKind::content, merge.error().message, {}}};
      continue;
    }
    if (!merge->conflicts.empty()) {
      conflicted[revisions[i]] = std::move(merge->conflicts);
      continue;
    }
    joined.snapshot = snapshot_of(*merge, joined.snapshot);
    joined.revisions.push_back(revisions[i]);
  }
  return joined;
}

}  // namespace playfs::publish
