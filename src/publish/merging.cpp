#include "publish/merging.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "model/chunking.h"
#include "wire/ancestry.h"

namespace playfs::publish {

namespace {

/// Bounds on criss-cross merges of criss-cross merges, and on their number per base. Beyond them the base is unknown.
constexpr int kDeepest = 24;
constexpr int kMostMerges = 128;

/// A stand-in id for the merge of several revisions.
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

CommonBase unknown_base(std::string why) { return {{}, std::move(why)}; }

bool same(const FileEntry& a, const FileEntry& b) {
  if (a.same_content_and_mode(b)) return true;
  auto hash = [](const FileEntry& entry) {
    auto content = entry.inline_content();
    return content ? ContentHash::of(*content) : ContentHash::parse(entry.hash_claim);
  };
  auto one = hash(a);
  return a.mode == b.mode && one && one == hash(b);
}

bool same(const Snapshot& a, const Snapshot& b) {
  auto is_nothing = [](const Json& state) { return state.is_null() || (state.object() && state.object()->empty()); };
  auto fields = [](const Snapshot& snapshot) {
    JsonObject extra = snapshot.manifest.extra;
    extra.erase("auto");
    return extra;
  };
  const Manifest &one = a.manifest, &other = b.manifest;
  return std::equal(one.files.begin(), one.files.end(), other.files.begin(), other.files.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && same(x.second, y.second); }) &&
         std::equal(one.refused.begin(), one.refused.end(), other.refused.begin(), other.refused.end(),
                    [](const auto& x, const auto& y) { return x.path == y.path && x.entry == y.entry; }) &&
         (a.state == b.state || (is_nothing(a.state) && is_nothing(b.state))) && Json(fields(a)) == Json(fields(b));
}

/// Differs from any version that a side may have, so that at a conflict both sides count as changed.
const Json& neither_value() {
  static const Json value(std::string("\0in conflict", 12));
  return value;
}

/// The file with bytes that no version has. Mode and fields are not in conflict.
MergedFile neither_file(MergedFile file) {
  file.text = *neither_value().string();
  return file;
}

bool has_refused(const Snapshot& snapshot, const std::string& path) {
  const auto& refused = snapshot.manifest.refused;
  return std::any_of(refused.begin(), refused.end(), [&](const RefusedEntry& each) { return each.path == path; });
}

/// Where a merge of two merge bases is in conflict, it must equal neither: a side that kept the one would seem
/// unchanged, and lose to the other. Nor may it equal an older version, which a side may have gone back to. Text gets
/// conflict markers.
void favour_neither_side(Merge& merge, const Snapshot& base, const Snapshot& one, const Snapshot& other) {
  bool has_fields = false;
  for (const auto& conflict : merge.conflicts) {
    const std::string &path = conflict.path, directory = path + '/', behind = path + '0';  // what follows '/'
    switch (conflict.kind) {
      case ConflictKind::text: merge.files[path].text = conflict.marked; break;
      case ConflictKind::content:
      case ConflictKind::deleted: merge.files[path] = neither_file(merge.files[path]); break;
      case ConflictKind::kind: {
        // A file on one side, a directory on the other. The base gets both: whichever a side kept, it has changed that
        // and deleted the other.
        if (auto file = merge.files.find(path); file != merge.files.end()) file->second = neither_file(file->second);
        for (auto file = merge.files.lower_bound(directory); file != merge.files.lower_bound(behind); ++file)
          file->second = neither_file(file->second);
        for (const auto& [below, file] : conflict.displaced) merge.files[below] = neither_file(file);
        break;
      }
      case ConflictKind::published:
        has_fields = true;
        if (!has_refused(one, path) && !has_refused(other, path)) break;
        std::erase_if(merge.refused, [&](const RefusedEntry& each) { return each.path == path; });
        merge.refused.push_back({path, "in conflict", neither_value()});
        break;
    }
  }
  if (!has_fields) return;
  std::vector<std::string> clashes;
  merge.state = merge_json(base.state, one.state, other.state, clashes, &neither_value());
  const Json extra =
      merge_json(base.manifest.extra, one.manifest.extra, other.manifest.extra, clashes, &neither_value());
  if (extra.object()) merge.extra = *extra.object();
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
  if (auto known = known_.find(id); known != known_.end()) return std::optional(known->second);
  auto revision = upstream_.revision(id);
  Link link;
  if (revision) {
    link = link_of(**revision);
  } else {
    if (is_transient(revision.error().code)) return fail(revision.error());
    if (revision.error().code == ErrorCode::not_found) return std::optional<Link>();
    // Its files are in a form that cannot be read here, but its parents can be.
    auto record = upstream_.get("revisions", id.text());
    if (!record && is_transient(record.error().code)) return fail(record.error());
    if (!record) return std::optional<Link>();
    link = link_of(wire::decode_revision_but_files(*std::move(record)), Manifest());
  }
  known_.emplace(id, link);
  return std::optional(std::move(link));
}

Result<bool> Merging::confirm_merge(const Link& link) {
  if (auto known = confirmed_.find(link.id); known != confirmed_.end()) return known->second;
  auto revision = upstream_.revision(link.id);
  if (!revision && is_transient(revision.error().code)) return fail(revision.error());
  std::vector<std::pair<WallTime, RevisionId>> parents;
  for (const auto& id : link.parents) {
    PLAYFS_TRY(auto parent, find_link(id));
    if (parent) parents.emplace_back(parent->created_at, id);
  }
  // In the order that was used when it was made.
  std::sort(parents.begin(), parents.end());
  std::vector<RevisionId> in_order;
  for (const auto& [time, id] : parents) in_order.push_back(id);
  bool is_merge = revision && in_order.size() == link.parents.size();
  if (is_merge) {
    std::map<RevisionId, std::vector<Conflict>> conflicted;
    auto joined = join(in_order, conflicted);
    if (!joined && is_transient(joined.error().code)) return fail(joined.error());
    is_merge = joined && conflicted.empty() && same(joined->snapshot, snapshot_of(*revision));
  }
  return confirmed_[link.id] = is_merge;
}

Result<Merge> Merging::merge(const Snapshot& base, const Snapshot& ours, const Snapshot& theirs,
                             const MergeLabels& labels) {
  auto read = [&](MergeSide side, const std::string& path, const FileEntry& entry) -> Result<std::string> {
    if (auto content = entry.inline_content()) return *std::move(content);
    const Snapshot& of = side == MergeSide::base ? base : side == MergeSide::ours ? ours : theirs;
    if (auto own = of.own.find(path); own != of.own.end()) return own->second.all();
    PLAYFS_TRY(Bytes content, upstream_.content(of.near, path, entry));
    return content.all();
  };
  return merge(base, ours, theirs, labels, read);
}

Result<Merge> Merging::merge(const Snapshot& base, const Snapshot& ours, const Snapshot& theirs,
                             const MergeLabels& labels, const ReadEntry& read) {
  // A merge may take seconds in all, but not for one file.
  auto read_while_wanted = [&](MergeSide side, const std::string& path, const FileEntry& entry) -> Result<std::string> {
    PLAYFS_CHECK(upstream_.check_wanted());
    return read(side, path, entry);
  };
  return merge_({base.manifest, base.state}, {ours.manifest, ours.state}, {theirs.manifest, theirs.state},
                read_while_wanted, labels);
}

Result<MergeBases> Merging::bases_of(const std::vector<RevisionId>& merged, const RevisionId& other) {
  if (merged.size() == 1) return find_merge_bases(merged.front(), other, links_.find);
  // As if they had just been merged.
  const Link together{virtual_id(), WallTime{std::numeric_limits<std::int64_t>::max()}, merged, {}};
  FindLink with_it = [&](const RevisionId& id) -> Result<std::optional<Link>> {
    if (id == together.id) return std::optional(together);
    return find_link(id);
  };
  return find_merge_bases(together.id, other, with_it);
}

Result<CommonBase> Merging::base_of(const std::vector<RevisionId>& merged, const RevisionId& other) {
  PLAYFS_TRY(auto bases, bases_of(merged, other));
  int merges = kMostMerges;
  return virtual_base(bases, 0, merges);
}

Result<CommonBase> Merging::virtual_base(const MergeBases& bases, int depth, int& merges) {
  if (!bases.is_whole) return unknown_base("their history cannot be read back to where they diverged");
  if (bases.ids.empty() && bases.began_apart) return CommonBase();
  if (bases.ids.empty()) return unknown_base("they have no common base, so deletions cannot be detected");
  CommonBase base;
  std::vector<RevisionId> merged;
  for (auto id = bases.ids.rbegin(); id != bases.ids.rend(); ++id) {  // oldest first
    auto revision = upstream_.revision(*id);
    if (!revision && is_transient(revision.error().code)) return fail(revision.error());
    if (!revision) return unknown_base("revision " + id->text() + ", their common base, cannot be read");
    if (merged.empty()) {
      base.snapshot = snapshot_of(*revision);
    } else {
      if (depth == kDeepest || --merges < 0) return unknown_base("they have too many criss-cross merges");
      PLAYFS_TRY(auto bases_below, bases_of(merged, *id));
      PLAYFS_TRY(CommonBase below, virtual_base(bases_below, depth + 1, merges));
      if (!below.unknown.empty()) return below;
      const Snapshot other = snapshot_of(*revision);
      PLAYFS_TRY(Merge merge, this->merge(below.snapshot, base.snapshot, other, {"one", "other"}));
      favour_neither_side(merge, below.snapshot, base.snapshot, other);
      base.snapshot = snapshot_of(merge, base.snapshot);
    }
    merged.push_back(*id);
  }
  return base;
}

Result<Merging::Joined> Merging::join(const std::vector<RevisionId>& revisions,
                                      std::map<RevisionId, std::vector<Conflict>>& conflicted) {
  PLAYFS_TRY(auto first, upstream_.revision(revisions.front()));
  Joined joined{snapshot_of(first), {revisions.front()}};
  for (std::size_t i = 1; i < revisions.size(); ++i) {
    PLAYFS_TRY(CommonBase base, base_of(joined.revisions, revisions[i]));
    if (!base.unknown.empty()) {
      conflicted[revisions[i]] = {{"", ConflictKind::content, base.unknown, {}}};
      continue;
    }
    PLAYFS_TRY(auto other, upstream_.revision(revisions[i]));
    auto merge = this->merge(base.snapshot, joined.snapshot, snapshot_of(other));
    if (!merge && is_transient(merge.error().code)) return fail(merge.error());
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
