// Discarding what is staged.
#include <algorithm>

#include "stage/ignore.h"
#include "stage/rebase.h"

namespace playfs::stage {

namespace {

bool has_markers(const Conflicted& each) { return each.has_markers; }

/// Whether `path` is at or below one of `tops`, of which "" is the root.
bool is_within(const PathSet& tops, const std::string& path) {
  return tops.contains("") || has_at_or_above(tops, path);
}

/// Stands for conflicts with markers that were discarded, since copies of their files may be staged (see
/// publish/conflicts.h). It names no file, and nothing is beside it, so it is never unresolved itself.
Conflicted markers_elsewhere() {
  return {.path = "/(markers)",
          .reason = "files with markers were discarded",
          .has_markers = true,
          .left = std::nullopt,
          .beside = "/(markers)"};
}

}  // namespace

Result<Discarded> Stage::discard(const PathSet& paths, bool only_try) {
  State& state = *state_;
  Discarded all;
  std::optional<std::set<std::string>> listed;  // as staged before any rule file was discarded, and
  std::uint64_t listed_at = 0;                  // after this many updates
  std::optional<std::set<std::string>> in_conflict_before;
  std::set<std::string> rules_dropped;  // rules from a merge stay listed, as deleted
  auto is_rules = [&](const Change& change) { return is_rule_file(change.path) && is_within(paths, change.path); };
  auto is_it_alone = [&](const Change& change) { return paths.size() == 1 && paths.contains(change.path); };
  while (true) {
    PLAYFS_CHECK(state.settle_replacements());
    std::uint64_t moves = 0;
    {
      MutexLock lock(state.mutex);
      moves = state.moves;
    }
    PLAYFS_TRY(auto changes, state.changes());
    MutexLock lock(state.mutex);
    std::vector<std::string> unpublished;
    if (std::any_of(changes.begin(), changes.end(), is_rules)) unpublished = state.unhurried_survey().unpublished;
    // If an update came in between, `changes` lacks what it brought. Half of that would stay: files with markers, but
    // no conflicts.
    if (state.moves != moves) continue;
    if (listed && listed_at != moves) {
      listed.reset();
      rules_dropped.clear();
    }
    if (listed) std::erase_if(changes, [&](const Change& change) { return !listed->contains(change.path); });
    if (!in_conflict_before) {
      in_conflict_before.emplace();
      for (const auto& each : state.notes.conflicted) in_conflict_before->insert(each.path);
    }
    const auto kept = state.kept_by_discard(paths);
    auto rules = std::find_if(changes.begin(), changes.end(), [&](const Change& change) {
      return is_rules(change) && !is_it_alone(change) && !rules_dropped.contains(change.path) &&
             !has_at_or_above(kept, change.path);
    });
    if (only_try) return state.discard(paths, changes, unpublished, true);
    const bool is_last = rules == changes.end();
    // Rule files first, one by one: files that the base's rules ignore are then no longer staged, so they stay.
    if (!is_last) PLAYFS_CHECK(state.discard(paths, changes, unpublished, true));
    if (!listed) {
      listed.emplace();
      listed_at = moves;
      for (const auto& change : changes) listed->insert(change.path);
    }
    PathSet now = is_last ? paths : PathSet{rules->path};
    // Local-only files that the list names were no changes when it was made: they stay in conflict.
    for (const auto& each : state.notes.conflicted)
      if (each.is_kept_here && !in_conflict_before->contains(each.path))
        std::erase_if(now, [&](const std::string& path) { return is_at_or_below(path, each.path); });
    PLAYFS_TRY(auto some, state.discard(now, changes, unpublished, false));
    all.changed.insert(all.changed.end(), some.changed.begin(), some.changed.end());
    all.paths.merge(some.paths);
    if (!is_last) {
      rules_dropped.insert(rules->path);
      continue;
    }
    PLAYFS_CHECK(state.forget_ignored(*in_conflict_before));
    return all;
  }
}

std::vector<Conflicted> Stage::State::kept_here_by_rules(const std::vector<std::string>& unpublished,
                                                         const std::vector<Conflicted>& list, std::string_view reason) {
  std::vector<Conflicted> added;
  for (std::string name : unpublished) {
    if (name.ends_with('/')) name.pop_back();
    auto is_it = [&](const Conflicted& each) { return each.path == name; };
    if (!find(name).inode || std::any_of(list.begin(), list.end(), is_it)) continue;
    added.push_back({.path = name, .reason = std::string(reason), .left = std::nullopt, .is_kept_here = true});
  }
  return added;
}

/// If the rules cannot be read yet, the list stays: whether a file in it is ignored is judged again before each commit.
Status Stage::State::forget_ignored(const std::set<std::string>& in_conflict_before) {
  auto is_new = [&](const Conflicted& each) {
    return each.is_kept_here && each.beside.empty() && !in_conflict_before.contains(each.path);
  };
  if (std::none_of(notes.conflicted.begin(), notes.conflicted.end(), is_new)) return {};
  const Survey now = unhurried_survey();
  if (now.unread_rules || !now.missing_rules.empty()) return {};
  PathSet staged;
  for (const auto& difference : now.differences) staged.insert(difference.path);
  std::vector<Conflicted> left = notes.conflicted;
  std::erase_if(left, [&](const Conflicted& each) { return is_new(each) && !has_at_or_below(staged, each.path); });
  if (left == notes.conflicted) return {};
  Batch batch = rows->begin();
  MergeNotes::put_conflicted(batch, left);
  PLAYFS_CHECK(batch.commit());
  notes.conflicted = std::move(left);
  return {};
}

PathSet Stage::State::kept_by_discard(const PathSet& paths) {
  PathSet kept;
  for (const auto& each : notes.conflicted)
    if (each.is_kept_here && !has_at_or_below(paths, each.path) && find(each.path).inode) kept.insert(each.path);
  return kept;
}

Result<Discarded> Stage::State::discard(const PathSet& paths, const std::vector<Change>& changes,
                                        const std::vector<std::string>& unpublished, bool only_try) {
  PathSet dropped;
  PathSet deleted;  ///< those of them where a file, if there is one, is local-only
  const PathSet kept_here = kept_by_discard(paths);
  const bool is_of_all = paths.contains("");
  for (const auto& change : changes) {
    if (!is_within(paths, change.path) || has_at_or_above(kept_here, change.path)) continue;
    dropped.insert(change.path);
    if (change.kind == ChangeKind::deleted) deleted.insert(change.path);
  }
  if (freezing) return fail(ErrorCode::busy, "a publication is starting", "try again");
  for (const auto& each : dropped) {
    if (pending && (pending->files.contains(each) || pending->deletions.contains(each)))
      return fail(ErrorCode::busy, each + " is being published", "wait for the publication to finish");
  }
  std::vector<Conflicted> added;
  if (std::any_of(dropped.begin(), dropped.end(), [](const std::string& each) { return is_rule_file(each); }))
    added = kept_here_by_rules(unpublished, notes.conflicted,
                               "it is kept here only, and without the discarded ignore rules it would be published");
  // The list of conflicts ends with the publication.
  if (pending && !added.empty())
    return fail(ErrorCode::busy,
                "a publication is in progress, and the rules that ignore " + added.front().path + " would be dropped",
                "wait for the publication to finish");
  const std::optional<std::string> pending_state = pending ? pending->state : std::nullopt;
  if (is_of_all && pending_state && staged_state == pending_state)
    return fail(ErrorCode::busy, "the project's state is being published", "wait for the publication to finish");
  const bool drops_state = is_of_all && staged_state;
  std::vector<std::string> obstructed;  // paths where a local-only file blocks the published one
  for (const auto& each : deleted) {
    const InodePtr there = base && base->tree.file_at(each) ? find(each).inode : nullptr;
    if (there && !there->is_directory()) obstructed.push_back(each);
  }
  if (!obstructed.empty()) return fail(in_the_way(obstructed));
  Batch batch = rows->begin();
  Rebase rebase(*this, batch, base, [&](const std::string& each, const Inode* file) {
    return dropped.contains(each) && !(file && deleted.contains(each));
  });
  PLAYFS_CHECK(rebase.run());
  // An obstructed path counts only at or above a path that is being discarded.
  std::erase_if(rebase.obstructed, [&](const std::string& each) { return !has_at_or_below(dropped, each); });
  if (!rebase.obstructed.empty()) return fail(in_the_way(rebase.obstructed));
  // While the merge goes on, the next commit deletes files of it that were discarded, so they stay listed.
  auto still_tracked = notes.tracked;
  std::erase_if(still_tracked,
                [&](const auto& each) { return is_within(paths, each.first) && each.second == TrackedAs::staged; });
  for (auto& [each, as] : still_tracked)
    if (is_within(paths, each)) as = TrackedAs::discarded;
  auto is_discarded = [&](const Tracked& by, const Change& change) {
    auto at = by.find(change.path);
    return change.kind == ChangeKind::deleted && at != by.end() && at->second == TrackedAs::discarded;
  };
  const bool drops_all = is_of_all && !pending;
  auto moved_to = [&](const Conflicted& each) {
    mutex.assert_held();
    auto found = by_ino.find(each.ino);
    auto at = found == by_ino.end() || !each.has_markers ? std::nullopt : this->path(*found->second);
    return at == each.path ? std::nullopt : at;
  };
  auto is_left_elsewhere = [&](const Conflicted& each) {
    auto at = moved_to(each);
    return at && !dropped.contains(*at);
  };
  auto is_dropped_elsewhere = [&](const Conflicted& each) {
    auto at = moved_to(each);
    return at && dropped.contains(*at) &&
           std::none_of(changes.begin(), changes.end(), [&](const Change& change) { return change.path == each.path; });
  };
  std::vector<Conflicted> left = notes.conflicted;
  std::erase_if(left, [&](const Conflicted& each) {
    if (kept_here.contains(each.path)) return false;
    if (drops_all) return true;
    // Their version is still beside it, or markers are elsewhere: neither may be published unasked.
    if (!each.beside.empty()) return false;
    if (dropped.contains(each.path) || is_within(paths, each.path)) return !is_left_elsewhere(each);
    return is_dropped_elsewhere(each);
  });
  Discarded discarded;
  for (const auto& change : changes)
    if (dropped.contains(change.path) && !is_discarded(notes.tracked, change)) discarded.paths.insert(change.path);
  for (const auto& each : notes.conflicted) {
    const bool goes =
        each.beside.empty() && is_within(paths, each.path) && std::find(left.begin(), left.end(), each) == left.end();
    if (goes) discarded.paths.insert(each.path);
  }
  if (drops_state) discarded.paths.insert(kStatePath);
  if (only_try) return discarded;
  const bool drops_something = !dropped.empty() || left.size() < notes.conflicted.size();
  // A local-only file is not part of the merge; if it is staged, it is among the changes.
  const bool stays_in_conflict = std::any_of(left.begin(), left.end(), [&](const Conflicted& each) {
    mutex.assert_held();
    if (each.beside.empty()) return !each.is_kept_here;
    return !dropped.contains(each.beside) && find(each.beside).inode != nullptr;
  });
  const bool stays_staged = std::any_of(changes.begin(), changes.end(), [&](const Change& change) {
    return !dropped.contains(change.path) && !is_discarded(still_tracked, change);
  });
  const bool leaves_nothing =
      drops_something && !stays_in_conflict && !stays_staged && (drops_state || !staged_state) && !pending;
  // A discard of everything, by whatever path, also drops what was merged in: otherwise other people's changes would
  // count as contained here, and the next commit would delete them.
  const bool drops_merge = drops_all || leaves_nothing;
  if (drops_merge) std::erase_if(still_tracked, [](const auto& each) { return each.second != TrackedAs::staged; });
  if (!added.empty()) add_conflicts(left, added);
  if (drops_state && pending_state) rows->put_value("state", *pending_state);
  else if (drops_state) rows->drop_value("state");
  notes.put_tracked(batch, still_tracked);
  if (drops_merge) MergeNotes::put_parents(batch, {});
  if (!drops_merge && std::any_of(notes.conflicted.begin(), notes.conflicted.end(), has_markers) &&
      std::none_of(left.begin(), left.end(), has_markers))
    left.push_back(markers_elsewhere());
  MergeNotes::put_conflicted(batch, left);
  if (!added.empty()) MergeNotes::put_accepted_by(batch, {});
  PLAYFS_CHECK(batch.commit());
  if (!added.empty()) notes.accepted_by.clear();
  if (drops_state) staged_state = pending_state;
  if (drops_merge) notes.parents.clear();
  notes.tracked = std::move(still_tracked);
  notes.conflicted = std::move(left);
  discarded.changed = std::move(rebase.invalidations);
  return discarded;
}

}  // namespace playfs::stage
