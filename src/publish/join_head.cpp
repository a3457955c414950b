// What a publication publishes: the frozen layer on its own base, or merged with head.
#include <algorithm>
#include <initializer_list>
#include <set>
#include <utility>

#include "publish/publication_engine.h"
#include "wire/json.h"

namespace playfs::publish {

namespace {

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

}  // namespace

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

/// A merge parent that the service lost counts only if head holds it nevertheless. If not, at most this client knows
/// its line, and what it brought is published as a change of the layer.
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

}  // namespace playfs::publish
