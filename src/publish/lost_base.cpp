#include "publish/lost_base.h"

#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/fd.h"
#include "publish/conflicts.h"
#include "wire/json.h"

namespace playfs::publish {

namespace {

/// How far lost revisions are followed, and head's line if parents do not tell.
constexpr int kMostFollowed = 1000;

const Manifest& manifest_of(const RevisionTreePtr& revision) {
  static const Manifest nothing;
  return revision ? revision->tree.manifest() : nothing;
}

/// Paths that differ between the two.
std::set<std::string> differing(const Manifest& a, const Manifest& b) {
  std::set<std::string> paths;
  for (auto [one, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    for (const auto& [path, entry] : one->files) {
      auto there = other->files.find(path);
      if (there == other->files.end() || !there->second.same_content_and_mode(entry)) paths.insert(path);
    }
  }
  return paths;
}

/// Stores the bytes here and returns whether that worked. Unavailable content stays a reference to what was published.
Result<bool> bring_up(Upstream& upstream, stage::Stage& stage, const stage::InodePtr& inode, const FileRef& from) {
  auto content = upstream.content(from.revision, from.path, *from.entry);
  if (!content && is_transient(content.error().code)) return fail(content.error());
  if (!content) return false;
  if (from.entry->mode == FileMode::symlink) {
    PLAYFS_TRY(std::string target, content->all());
    PLAYFS_CHECK(stage.copy_up_link(inode, from, std::move(target)));
    return true;
  }
  PLAYFS_CHECK(stage.copy_up(inode, from, content->size(), [&](int fd) {
    return each_piece(*content, [&](std::uint64_t at, std::string_view piece) { return write_all_at(fd, piece, at); });
  }));
  return true;
}

bool holds(const RevisionTreePtr& revision, const FileRef& file) {
  const FileEntry* entry = revision ? revision->tree.file_at(file.path) : nullptr;
  return entry && entry->same_content_and_mode(*file.entry);
}

/// If an entry has no hash, its text decides.
bool is_same(const FileEntry* a, const FileEntry* b) {
  if (!a || !b) return a == b;
  if (a->same_content_and_mode(*b)) return true;
  auto hash = known_hash(*a);
  return a->mode == b->mode && hash && hash == known_hash(*b);
}

/// nullptr if it is unavailable or `id` is empty.
Result<RevisionTreePtr> as_far_as_it_is_there(Upstream& upstream, const RevisionId& id) {
  if (id.empty()) return RevisionTreePtr();
  auto revision = upstream.revision(id);
  if (!revision && is_transient(revision.error().code)) return fail(revision.error());
  return revision ? *revision : RevisionTreePtr();
}

}  // namespace

Result<RevisionTreePtr> find_survivor(Upstream& upstream, Absences& absences, Merging& merging,
                                      const RevisionTreePtr& lost, const RevisionTreePtr& head) {
  if (!head) return RevisionTreePtr();
  bool is_cut = false;
  const FindLink links = [&](const RevisionId& id) -> Result<std::optional<Link>> {
    PLAYFS_TRY(auto link, merging.links().find(id));
    is_cut = is_cut || !link;
    return link;
  };
  PLAYFS_TRY(auto bases, find_merge_bases(lost->revision.id, head->revision.id, links));
  // Find the newest common ancestor that is left: head may have reached the service after it went back, and name lost
  // revisions as parents too.
  std::set<std::pair<WallTime, RevisionId>> common;
  auto add = [&](const RevisionId& id) -> Status {
    PLAYFS_TRY(auto link, links(id));
    if (link) common.emplace(link->created_at, id);
    return {};
  };
  for (const auto& base : bases.ids) PLAYFS_CHECK(add(base));
  std::optional<RevisionId> in_doubt;  // older ones are looked up all the same, so that one wait is enough
  for (int asked = 0; !common.empty() && asked < kMostFollowed; ++asked) {
    const RevisionId newest = common.extract(std::prev(common.end())).value().second;
    PLAYFS_TRY(Absences::Presence presence, absences.look(newest));
    if (presence == Absences::Presence::there && !in_doubt) return upstream.revision(newest);
    if (presence == Absences::Presence::there) break;
    if (presence == Absences::Presence::not_shown) in_doubt = newest;
    PLAYFS_TRY(auto link, links(newest));
    if (!link) continue;
    for (const auto& parent : link->parents) PLAYFS_CHECK(add(parent));
  }
  if (in_doubt) return Absences::not_shown(*in_doubt);
  RevisionTreePtr at = is_cut ? head : nullptr;  // otherwise the two have nothing in common
  for (int followed = 0; at && followed < kMostFollowed; ++followed) {
    if (at->revision.created_at < lost->revision.created_at) return at;
    if (at->revision.parents.empty()) break;
    PLAYFS_TRY(at, as_far_as_it_is_there(upstream, at->revision.parents.front()));
  }
  return RevisionTreePtr();
}

Result<BaseFate> find_fate(const BaseParts& parts, const RevisionTreePtr& base, const RevisionTreePtr& head,
                           WallTime begun) {
  PLAYFS_TRY(Absences::Presence presence, parts.absences.look(base->revision.id));
  if (presence == Absences::Presence::there) return BaseFate();
  if (head) {
    PLAYFS_TRY(auto holdings, Holdings::compare({head->revision.id, base->revision.id}, parts.merging.links()));
    if (holdings.covers(head->revision.id, base->revision.id)) return BaseFate();
  }
  PLAYFS_TRY(auto survivor, find_survivor(parts.upstream, parts.absences, parts.merging, base, head));
  if (presence == Absences::Presence::not_shown) return Absences::not_shown(base->revision.id);
  PLAYFS_TRY(auto before, parts.journal.lost_base());
  LostBase lost{base->revision.id, id_of(survivor)};
  if (before) {
    // It went back again, and the tree still has what was lost the first time.
    PLAYFS_TRY(auto holdings, Holdings::compare({before->revision, base->revision.id}, parts.merging.links()));
    if (holdings.covers(before->revision, base->revision.id)) lost.revision = before->revision;
  }
  if (before != lost) {
    PLAYFS_CHECK(parts.journal.record_lost_base(lost, survivor ? survivor->revision.created_at : begun));
    parts.events.event(
        "service_went_back",
        {{"project", parts.project.text()}, {"lost", base->revision.id.text()}, {"survivor", lost.survivor.text()}});
  }
  return BaseFate{true, std::move(survivor)};
}

Status keep_what_lies_elsewhere(Upstream& upstream, Absences& absences, stage::Stage& stage,
                                const RevisionTreePtr& survivor) {
  std::map<RevisionId, Absences::Presence> revisions;
  std::vector<stage::LowerFile> gone;
  std::optional<RevisionId> in_doubt;
  for (const auto& file : stage.lower_files()) {
    if (holds(survivor, file.from)) continue;
    const RevisionId& id = file.from.revision->revision.id;
    auto known = revisions.find(id);
    if (known == revisions.end()) {
      PLAYFS_TRY(Absences::Presence presence, absences.look(id));
      known = revisions.emplace(id, presence).first;
    }
    if (known->second == Absences::Presence::there) continue;
    // Copying the bytes is harmless, so that does not wait. Reporting them as lost does.
    PLAYFS_TRY(bool is_here, bring_up(upstream, stage, file.inode, file.from));
    if (is_here) continue;
    if (known->second == Absences::Presence::gone) gone.push_back(file);
    else in_doubt = id;
  }
  stage.note_gone(gone);
  if (in_doubt) return Absences::not_shown(*in_doubt);
  return {};
}

Status keep_what_was_lost(Upstream& upstream, Absences& absences, stage::Stage& stage, const RevisionTreePtr& survivor,
                          const stage::Told& told) {
  RevisionTreePtr lost = stage.base();
  std::set<std::string> kept = differing(manifest_of(lost), manifest_of(survivor));
  for (const auto& path : kept) {
    auto inode = stage.find(path);
    auto lower = inode ? stage.lower_content(inode) : std::nullopt;
    if (lower) PLAYFS_CHECK(bring_up(upstream, stage, inode, *lower));
  }
  PLAYFS_CHECK(keep_what_lies_elsewhere(upstream, absences, stage, survivor));
  const Json none;
  const Json& before = lost ? lost->revision.state : none;
  if (before != (survivor ? survivor->revision.state : none) && !stage.staged_state())
    PLAYFS_CHECK(stage.stage_state(wire::to_text(before.is_null() ? Json(JsonObject()) : before)));
  stage::Merged merged;
  merged.seen_base = id_of(lost);
  merged.seen_parents = stage.merge_parents();
  merged.tracked = stage.tracked();
  merged.seen_tracked = merged.tracked;
  PLAYFS_TRY(auto changes, stage.changes());
  std::set<std::string> staged;
  for (const auto& change : changes)
    if (change.kind != stage::ChangeKind::deleted) staged.insert(change.path);
  std::vector<stage::Conflicted> conflicted = stage.conflicted();
  merged.seen_conflicted = conflicted;
  for (const auto& path : kept) {
    const stage::Seen seen = stage.seen_at(path);
    merged.paths.push_back({.path = path, .seen = seen, .content = {}});
    // No remaining revision has it, so a commit without it deletes nothing.
    if (lost && lost->tree.file_at(path)) merged.tracked.emplace(path, stage::TrackedAs::staged);
    else if (seen.inode && !staged.contains(path))
      conflicted.push_back({.path = path,
                            .reason = "it is local-only, and the service went back to a revision with a file there",
                            .left = std::nullopt,
                            .is_kept_here = true});
  }
  if (conflicted != *merged.seen_conflicted) {
    std::sort(conflicted.begin(), conflicted.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    merged.conflicted = std::move(conflicted);
  }
  merged.has_state = true;
  merged.state = merged.seen_state = stage.staged_state();
  return stage.integrate(survivor, merged, *merged.seen_parents, told);
}

Result<bool> add_what_came_back(Upstream& upstream, Journal& journal, const LostSides& sides) {
  PLAYFS_TRY(auto known, journal.lost_base());
  if (!known || !sides.theirs) return false;
  PLAYFS_TRY(auto lost, as_far_as_it_is_there(upstream, known->revision));
  PLAYFS_TRY(auto survivor, as_far_as_it_is_there(upstream, known->survivor));
  if (!lost || (!survivor && !known->survivor.empty())) return false;
  auto &base = sides.base.manifest.files, &ours = sides.ours.manifest.files;
  std::set<std::string> missing;
  for (const auto& path : differing(manifest_of(lost), manifest_of(survivor))) {
    auto mine = ours.find(path);
    if (mine != ours.end() && sides.tell) PLAYFS_CHECK(sides.tell(path, mine->second));
    if (is_same(mine == ours.end() ? nullptr : &mine->second, lost->tree.file_at(path))) missing.insert(path);
  }
  const Json none;
  bool lacks_state =
      sides.ours.state == lost->revision.state && lost->revision.state != (survivor ? survivor->revision.state : none);
  // It came back with the lost revision itself, or with a newer one that has it and whose parent does not. Older
  // revisions may by chance have what was changed since. Those up to the tree's base have been merged with the tree.
  RevisionTreePtr at = sides.theirs;
  for (int followed = 0; followed < kMostFollowed && (lacks_state || !missing.empty()); ++followed) {
    if (!at || (sides.on && at->revision.created_at <= sides.on->revision.created_at)) break;
    const bool is_it = at->revision.id == lost->revision.id;
    if (!is_it && at->revision.created_at <= lost->revision.created_at) break;
    const auto& parents = at->revision.parents;
    PLAYFS_TRY(auto before, as_far_as_it_is_there(upstream, parents.empty() ? RevisionId() : parents.front()));
    if (!is_it && !before && !parents.empty()) break;
    std::erase_if(missing, [&](const std::string& path) {
      const FileEntry *was = lost->tree.file_at(path), *is = at->tree.file_at(path);
      if (!is_same(is, was)) return false;
      if (!is_it && is_same(before ? before->tree.file_at(path) : nullptr, was)) return false;
      if (is) base.insert_or_assign(path, *is);
      else base.erase(path);
      if (is) ours.insert_or_assign(path, *is);
      return true;
    });
    const Json& state_before = before ? before->revision.state : none;
    if (lacks_state && at->revision.state == lost->revision.state && (is_it || state_before != lost->revision.state)) {
      sides.base.state = sides.ours.state;
      lacks_state = false;
    }
    at = std::move(before);
  }
  std::erase_if(missing, [&](const std::string& path) {
    const FileEntry *was = lost->tree.file_at(path), *is = sides.theirs->tree.file_at(path);
    if (!was || !is || !sides.lacks_bytes || !sides.lacks_bytes(path) || holds(survivor, {sides.theirs, path, is}))
      return false;
    base.insert_or_assign(path, ours.at(path));
    return true;
  });
  return missing.empty() && !lacks_state;
}

}  // namespace playfs::publish
