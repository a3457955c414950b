// The result of an integration: what the work tree has to become.
#include "publish/integration.h"

#include <algorithm>
#include <set>
#include <utility>

#include "publish/conflicts.h"
#include "stage/ignore.h"
#include "wire/json.h"

namespace playfs::publish {

namespace {

Error is_kept_here_only(const std::string& path) {
  return Error{ErrorCode::busy, path + " is local-only and in the way of a published file", "move it out of the way"};
}

/// The paths of `files` that a file or directory `name` could block. Does not search all files, since many names may be
/// ignored.
std::vector<std::string> at_above_or_below(const decltype(Merge::files)& files, const std::string& name) {
  std::vector<std::string> paths;
  for (auto end = name.find('/'); end != std::string::npos; end = name.find('/', end + 1))
    if (files.contains(name.substr(0, end))) paths.push_back(name.substr(0, end));
  if (files.contains(name)) paths.push_back(name);
  const std::string within = name + '/';
  for (auto at = files.lower_bound(within); at != files.end() && at->first.starts_with(within); ++at)
    paths.push_back(at->first);
  return paths;
}

Conflict of_one_side(const std::string& path, bool is_ours, const std::string& unknown) {
  return {path,
          ConflictKind::deleted,
          std::string(is_ours ? "only this side has it" : "only the other side has it") +
              "; the side without it may have deleted it: " + unknown,
          {}};
}

}  // namespace

void Integration::set_beside(const Step& step, const std::string& top, std::string reason,
                             const std::map<std::string, MergedFile>& displaced, Merge& merge,
                             std::vector<stage::Conflicted>& list) {
  auto is_taken = [&](const std::string& name) {
    auto below = merge.files.lower_bound(name + '/');
    return merge.files.contains(name) || stage_.find(name) ||
           (below != merge.files.end() && below->first.starts_with(name + '/')) ||
           (step.next && (step.next->tree.file_at(name) || step.next->tree.directory_at(name)));
  };
  std::string name = name_beside(top, step.ending, 1);
  for (int number = 2; is_taken(name); ++number) name = name_beside(top, step.ending, number);
  for (const auto& [path, file] : displaced) merge.files.insert_or_assign(name + path.substr(top.size()), file);
  std::erase_if(list, [&](const stage::Conflicted& each) { return each.path == top; });
  list.push_back({top, std::move(reason) + "; theirs is in " + name, false, std::nullopt, name});
}

/// The path at which `kept`, or something in that directory, blocks a file at `path`; nullopt if nothing does.
Result<std::optional<std::string>> Integration::stands_in_the_way(const std::string& kept, bool is_directory,
                                                                  const std::string& path) const {
  const std::optional<std::string> none;
  if (path == kept || kept.starts_with(path + '/')) return std::optional(path);
  if (!path.starts_with(kept + '/')) return none;
  if (!is_directory) return std::optional(kept);
  for (std::size_t end = kept.size(); end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string at = path.substr(0, end);
    auto inode = stage_.find(at);
    if (!inode) return none;
    PLAYFS_TRY(auto attributes, stage_.attributes(inode));
    if (attributes.kind != stage::Kind::directory) return std::optional(at);
  }
  return std::optional(path);
}

/// Local-only files (ignored ones, fifos) stay where they are. A published file of the same name is put beside them if
/// the operation must go on (`clears_the_way`); otherwise the caller gets an error.
Status Integration::clear_the_way(Step& step, Merge& merge, std::vector<stage::Conflicted>& list) {
  for (std::string name : step.unpublished) {
    bool is_directory = name.ends_with('/');
    if (is_directory) name.pop_back();
    if (auto inode = stage_.find(name); is_directory && inode) {
      PLAYFS_TRY(auto entries, stage_.list(inode, 0, 1));
      if (entries.empty()) continue;  // an empty directory gives way
    }
    std::map<std::string, std::map<std::string, MergedFile>> displaced;  // by what blocks them
    for (const std::string& path : at_above_or_below(merge.files, name)) {
      if (step.ours.manifest.file_at(path)) continue;
      PLAYFS_TRY(auto top, stands_in_the_way(name, is_directory, path));
      if (!top) continue;
      if (*top == path && !(is_directory && path == name)) step.kept.insert(path);
      displaced[*top].emplace(path, merge.files.at(path));
    }
    for (const auto& [top, files] : displaced) {
      if (!step.clears_the_way) return fail(is_kept_here_only(top));
      for (const auto& [path, file] : files) merge.files.erase(path);
      set_beside(step, top, "a local-only file is in the way of theirs", files, merge, list);
      // Otherwise a later commit would publish it as a change of their file, which nobody requested.
      for (auto& each : list)
        if (each.path == top) each.is_kept_here = true;
    }
  }
  return {};
}

/// Whether the result's ignore rules differ from ours.
bool Integration::brings_rules(const Step& step, const Merge& merge) {
  stage::RuleFiles wanted;
  for (const auto& [path, file] : merge.files)
    if (stage::is_rules(path, file.entry.mode))
      wanted.emplace(path, file.text ? ContentHash::of(*file.text).hex() : content_key(file.entry));
  return wanted != stage::rules_of(step.ours.manifest);
}

/// What others changed in instructions for agents that are being edited here would be obeyed, and then published as
/// one's own, without anyone having read it.
Status Integration::add_instructions_of_both(Step& step, const Merge& merge, std::vector<stage::Conflicted>& list) {
  if (!stage_.hides_instructions()) return {};
  for (const auto& staged : step.seen) {
    const std::string& path = staged.first;
    const auto file = merge.files.find(path);
    const FileEntry* ours = step.ours.manifest.file_at(path);
    if (file == merge.files.end() || !ours || !gives_instructions(path) || stage_.is_hidden(path)) continue;
    const std::optional<std::string>& text = file->second.text;
    if (!text && ours->same_content(file->second.entry)) continue;
    if (std::any_of(list.begin(), list.end(), [&](const auto& each) { return each.path == path; })) continue;
    auto left = text ? std::optional(ContentHash::of(*text)) : known_hash(file->second.entry);
    if (!left) {
      PLAYFS_TRY(const Bytes theirs, read(step, MergeSide::theirs, path, file->second.entry));
      PLAYFS_TRY(const auto examined, examine(theirs));
      left = examined.hash;
    }
    list.push_back({path, "others changed it too, and agents obey it: read what they wrote", false, left});
  }
  return {};
}

Result<stage::Merged> Integration::bring_in(Step& step) {
  auto reader = [&](MergeSide side, const std::string& path, const FileEntry& entry) -> Result<std::string> {
    PLAYFS_TRY(Bytes content, read(step, side, path, entry));
    return content.all();
  };
  PLAYFS_TRY(Merge merge, merging_.merge(step.base, step.ours, step.theirs, step.labels, reader));
  PLAYFS_TRY(auto list, unresolved(stage_));
  PLAYFS_CHECK(sync_resolved(stage_, list));
  std::vector<Conflict> conflicts = std::move(merge.conflicts);
  if (!step.unknown.empty()) {
    for (const auto& [path, file] : merge.files) {
      bool is_ours = step.ours.manifest.file_at(path), is_theirs = step.theirs.manifest.file_at(path);
      if (is_ours != is_theirs) conflicts.push_back(of_one_side(path, is_ours, step.unknown));
    }
  }
  for (auto& conflict : conflicts) {
    conflict.path = path_of(conflict);
    std::erase_if(list, [&](const stage::Conflicted& each) { return each.path == conflict.path; });
    if (conflict.kind == ConflictKind::text) {
      merge.files[conflict.path].text = conflict.marked;
      list.push_back({conflict.path, conflict.reason, true, ContentHash::of(conflict.marked)});
    } else if (!conflict.displaced.empty()) {
      set_beside(step, conflict.path, std::move(conflict.reason), conflict.displaced, merge, list);
    } else {
      PLAYFS_TRY(auto left, hash_of_left(step, merge, conflict.path));
      list.push_back({conflict.path, conflict.reason, false, left});
    }
  }
  PLAYFS_CHECK(add_instructions_of_both(step, merge, list));
  PLAYFS_TRY(step.unpublished, stage_.unpublished());
  PLAYFS_CHECK(clear_the_way(step, merge, list));
  step.brings_rules = brings_rules(step, merge);
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.path < b.path; });

  stage::Merged merged;
  merged.seen_base = id_of(step.on);
  merged.seen_parents = step.taken_in;
  merged.seen_conflicted = step.conflicted;
  merged.seen_tracked = step.tracked;
  merged.brings_rules = step.brings_rules;
  merged.has_state = true;
  merged.seen_state = step.seen_state;
  const Json none;
  if (merge.state != (step.next ? step.next->revision.state : none)) merged.state = wire::to_text(merge.state);
  PLAYFS_CHECK(decide(step, merge, list, merged));
  for (const stage::MergedPath& put : merged.paths) {
    auto each = std::find_if(list.begin(), list.end(), [&](const auto& one) { return one.path == put.path; });
    if (!put.content || each == list.end()) continue;
    PLAYFS_TRY(auto attributes, stage_.attributes(put.content));
    each->ino = attributes.ino;
  }
  for (auto& each : list) {
    auto inode = each.ino == 0 && each.left && is_of_file(each) ? stage_.find(each.path) : nullptr;
    if (!inode) continue;
    PLAYFS_TRY(auto attributes, stage_.attributes(inode));
    each.ino = attributes.ino;
  }
  merged.conflicted = std::move(list);
  keep_tracked(step, merge, merged);
  return merged;
}

/// Paths that a revision in this merge has are published, even if the next base does not have them and a rule ignores
/// them. So are files that were staged before others brought a rule for them. Paths that a parent of the next commit
/// has and that were deleted here stay recorded as such.
void Integration::keep_tracked(const Step& step, const Merge& merge, stage::Merged& merged) const {
  auto is_parent = [&](const RevisionTreePtr& revision) {
    return revision && std::find(step.parents.begin(), step.parents.end(), revision->revision.id) != step.parents.end();
  };
  const bool stays_taken_in = std::any_of(step.taken_in.begin(), step.taken_in.end(), [&](const RevisionId& id) {
    return std::find(step.parents.begin(), step.parents.end(), id) != step.parents.end();
  });
  const bool takes_in_base = is_parent(step.on), takes_in_theirs = is_parent(step.theirs.near);
  const stage::Tracked& before = step.tracked;
  auto is_held_by_parent = [&](const std::string& path) {
    auto was = before.find(path);
    return (stays_taken_in && was != before.end() && was->second != stage::TrackedAs::staged) ||
           (takes_in_base && step.below.manifest.file_at(path)) ||
           (takes_in_theirs && step.theirs.manifest.file_at(path));
  };
  auto track = [&](const std::string& path, stage::TrackedAs as) {
    if (!(step.next && step.next->tree.file_at(path))) merged.tracked.emplace(path, as);
  };
  for (const auto& [path, file] : merge.files) {
    const bool is_tracked = before.contains(path) || step.base.manifest.file_at(path) ||
                            step.theirs.manifest.file_at(path) || step.below.manifest.file_at(path) ||
                            (step.brings_rules && step.ours.manifest.file_at(path));
    if (is_held_by_parent(path)) track(path, stage::TrackedAs::taken_in);
    else if (is_tracked) track(path, stage::TrackedAs::staged);
  }
  // Excludes paths of the merge base: the other side deleted them too, or the next base has them.
  auto track_deleted = [&](const std::string& path) {
    if (merge.files.contains(path) || step.base.manifest.file_at(path) || !is_held_by_parent(path)) return;
    auto was = before.find(path);
    const bool is_discarded = was != before.end() && was->second == stage::TrackedAs::discarded;
    track(path, is_discarded ? stage::TrackedAs::discarded : stage::TrackedAs::taken_in);
  };
  for (const auto& [path, as] : before) track_deleted(path);
  if (!takes_in_base) return;
  for (const auto& [path, entry] : step.below.manifest.files) track_deleted(path);
}

Status Integration::decide(Step& step, const Merge& merge, const std::vector<stage::Conflicted>& list,
                           stage::Merged& merged) {
  std::set<std::string> paths, in_conflict, unstaged;
  const Manifest nothing;
  const Manifest& next = step.next ? step.next->tree.manifest() : nothing;
  for (const Manifest* manifest :
       std::initializer_list<const Manifest*>{&step.base.manifest, &step.ours.manifest, &step.theirs.manifest, &next})
    for (const auto& [path, entry] : manifest->files) paths.insert(path);
  for (const auto& [path, file] : merge.files) paths.insert(path);
  for (const auto& each : list) in_conflict.insert(each.path);
  for (const auto& path : paths) {
    const FileEntry* ours = step.ours.manifest.file_at(path);
    const FileEntry* theirs = step.theirs.manifest.file_at(path);
    bool is_staged = !same_content_and_mode(ours, step.below.manifest.file_at(path));
    const FileEntry* there = is_staged ? ours : next.file_at(path);
    auto found = merge.files.find(path);
    const MergedFile* wanted = found == merge.files.end() ? nullptr : &found->second;
    bool is_right = wanted ? !wanted->text && same_content_and_mode(&wanted->entry, there) : !there;
    if (is_right && !is_staged) continue;
    stage::MergedPath decided;
    decided.path = path;
    // If theirs brought no change and nothing is rewritten, anything written here meanwhile is fine.
    bool is_at_stake =
        !is_right || in_conflict.contains(path) || !same_content_and_mode(step.base.manifest.file_at(path), theirs);
    if (auto seen = step.seen.find(path); is_at_stake && seen != step.seen.end()) decided.seen = seen->second;
    if (is_at_stake && !decided.seen) {
      decided.seen = stage_.seen_at(path);
      unstaged.insert(path);
    }
    if (!is_right && !step.kept.contains(path))
      decided.action = wanted ? stage::MergedPath::Action::put : stage::MergedPath::Action::remove;
    // It appeared after clear_the_way() had looked, or lies where this side has deleted something.
    if (!is_right && !ours && decided.seen->inode && !step.kept.contains(path)) return fail(is_kept_here_only(path));
    if (!is_right && wanted) {
      Bytes content = wanted->text.value_or("");
      if (!wanted->text) {
        bool is_ours = ours && ours->same_content(wanted->entry);
        PLAYFS_TRY(content,
                   read(step, is_ours || !step.theirs.near ? MergeSide::ours : MergeSide::theirs, path, wanted->entry));
      }
      PLAYFS_TRY(decided.content, stage_.prepare(content, wanted->entry.mode));
    }
    merged.paths.push_back(std::move(decided));
  }
  if (unstaged.empty()) return {};
  // Fail if one of these paths is staged by now. From here on, a change shows in what was seen of it.
  PLAYFS_TRY(auto changes, stage_.changes());
  for (const auto& change : changes)
    if (unstaged.contains(change.path))
      return fail(ErrorCode::busy, change.path + " changed during the merge", "try again");
  return {};
}

}  // namespace playfs::publish
