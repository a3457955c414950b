// Another base under the tree: a settled publication, a merge, or the next revision of a clean work tree.
#include <algorithm>

#include "stage/ignore.h"
#include "stage/rebase.h"

namespace playfs::stage {

namespace {

Error has_moved_on() { return Error{ErrorCode::busy, "the work tree's base has changed", "playfs update"}; }

Error is_contested(const std::vector<std::string>& paths) {
  return Error{
      ErrorCode::busy,
      paths.front().substr(paths.front().starts_with('/') ? 1 : 0) + " was changed both here and in the revision",
      "playfs update"};
}

/// Whether a merge can be given the inode: not a directory, which is just what is in it.
bool is_mergeable(const InodePtr& inode) { return inode && !inode->is_directory(); }

}  // namespace

Status Stage::integrate(RevisionTreePtr base, const Merged& merged, const std::vector<RevisionId>& parents,
                        const Told& told) {
  State& state = *state_;
  PLAYFS_CHECK(state.settle_replacements());
  // Afterwards, what was rewritten with equal bytes is known to be equal.
  PLAYFS_TRY([[maybe_unused]] auto changes, state.changes());
  std::vector<Invalidation> invalidations;
  {
    MutexLock lock(state.mutex);
    static_cast<void>(state.unhurried_survey());
    if (state.pending || state.freezing)
      return fail(ErrorCode::busy, "a publication is in progress", "wait for it to finish");
    PLAYFS_TRY(invalidations, state.stand_on(std::move(base), merged, [&](Batch& batch) PLAYFS_REQUIRES(state.mutex) {
      MergeNotes::put_parents(batch, parents);
      batch.after_commit([&]() PLAYFS_REQUIRES(state.mutex) { state.notes.parents = parents; });
    }));
  }
  if (told) told(invalidations);
  return state.rows->sync();
}

Status Stage::settle(const std::string& tx, RevisionTreePtr base, const Merged& merged, const Told& told) {
  State& state = *state_;
  PLAYFS_CHECK(state.settle_replacements());
  // Afterwards, what was rewritten with equal bytes is known to be equal.
  PLAYFS_TRY([[maybe_unused]] auto changes, state.changes());
  std::vector<Invalidation> invalidations;
  {
    MutexLock lock(state.mutex);
    static_cast<void>(state.unhurried_survey());
    if (!state.pending && state.base && base && state.base->revision.id == base->revision.id)
      return state.rows->check_disk();  // done before; the caller died before recording it
    if (!state.pending || state.pending->tx != tx)
      return fail(ErrorCode::not_found, "there is no pending publication " + tx);
    PLAYFS_TRY(invalidations, state.stand_on(std::move(base), merged, [&](Batch& batch) PLAYFS_REQUIRES(state.mutex) {
      state.drop_pending();
      bool state_was_published = state.staged_state == state.pending->state && !merged.has_state;
      if (state_was_published) state.rows->drop_value("state");
      MergeNotes::put_parents(batch, {});
      // What was in conflict is published. What is in conflict from now on comes from this merge.
      if (!merged.conflicted) state.notes.replace_conflicted(batch, {});
      batch.after_commit([&state, state_was_published]() PLAYFS_REQUIRES(state.mutex) {
        if (state_was_published) state.staged_state.reset();
        state.notes.parents.clear();
        state.forget_pending();
      });
    }));
  }
  if (told) told(invalidations);
  return state.rows->sync();
}

/// Checks and applies a merge's decisions under one hold of the mutex: a change made after the merge read the path is
/// never overwritten.
Result<std::vector<Invalidation>> Stage::State::stand_on(RevisionTreePtr next, const Merged& merged,
                                                         const std::function<void(Batch&)>& also) {
  if (merged.seen_base && *merged.seen_base != id_of(base)) return fail(has_moved_on());
  // A discard drops what was merged in, and thus what the merge compared with.
  if (merged.seen_parents && *merged.seen_parents != notes.parents) return fail(has_moved_on());
  if (merged.seen_tracked && *merged.seen_tracked != notes.tracked) return fail(has_moved_on());
  PLAYFS_CHECK(check_seen(merged.seen_conflicted, shown_conflicts()));
  std::set<std::string> handled;
  Rebase::Decisions decisions;
  std::vector<std::string> overtaken;
  for (const auto& each : merged.paths) {
    handled.insert(each.path);
    if (each.action != MergedPath::Action::keep) decisions.emplace(each.path, &each);
    if (each.seen && !is_as_seen(each)) overtaken.push_back(each.path);
  }
  if (merged.has_state) handled.insert(kStatePath);
  if (merged.has_state && merged.seen_state != staged_state) overtaken.emplace_back(kStatePath);
  // A local-only file that was seen at that path may have been moved since, and would be published from its new path.
  for (const auto& each : merged.conflicted.value_or(std::vector<Conflicted>()))
    if (each.is_kept_here && !find(each.path).inode) overtaken.push_back(each.path);
  if (!overtaken.empty()) return fail(is_contested(overtaken));
  if (auto paths = contested(next, handled); !paths.empty()) return fail(is_contested(paths));
  PLAYFS_CHECK(secure_kept(merged));
  const std::vector<std::string> local_only = merged.brings_rules ? survey().unpublished : std::vector<std::string>();
  Batch batch = rows->begin();
  Rebase rebase(
      *this, batch, std::move(next),
      [&](const std::string& path, const Inode* file)
          PLAYFS_REQUIRES(mutex) { return !handled.contains(path) && is_as_frozen(path, file); },
      std::move(decisions));
  PLAYFS_CHECK(rebase.run());
  if (!rebase.obstructed.empty()) {
    // Staged paths were checked above; no merge knows about local-only ones.
    PathSet kept_here;
    for (const auto& name : survey().unpublished) kept_here.insert(name.substr(0, name.find_last_not_of('/') + 1));
    std::erase_if(rebase.obstructed, [&](const std::string& path) {
      const bool is_handled = handled.contains(path) && !rebase.shut_out.contains(path);
      return !rebase.misplaced.contains(path) &&
             (is_handled || (!has_at_or_below(kept_here, path) && !has_at_or_above(kept_here, path)));
    });
  }
  if (!rebase.obstructed.empty()) return fail(in_the_way(rebase.obstructed));
  if (merged.conflicted) {
    std::vector<Conflicted> list = *merged.conflicted;
    // Files that are local-only under the present rules are not published unasked under theirs. Only now is it certain
    // which these are.
    if (merged.brings_rules)
      add_conflicts(list,
                    kept_here_by_rules(local_only, list, "it is local-only, but their ignore rules would publish it"));
    notes.replace_conflicted(batch, std::move(list));
  }
  notes.put_tracked(batch, merged.tracked);
  conceal_merged(batch, merged);
  if (merged.state) rows->put_value("state", *merged.state);
  else if (merged.has_state) rows->drop_value("state");
  batch.after_commit([&]() PLAYFS_REQUIRES(mutex) {
    if (merged.has_state) staged_state = merged.state;
    notes.tracked = merged.tracked;
    changed();
    ++moves;
  });
  also(batch);
  PLAYFS_CHECK(batch.commit());
  return std::move(rebase.invalidations);
}

/// Gives rows to what is to stay, which changes nothing yet: without them it would show through and follow the new
/// base.
Status Stage::State::secure_kept(const Merged& merged) {
  std::vector<InodePtr> kept;
  for (const auto& each : merged.paths)
    if (each.action == MergedPath::Action::keep) kept.push_back(find(each.path).deepest);
  Batch batch = rows->begin();
  for (const auto& inode : kept) secure(batch, *inode);
  return batch.commit();
}

bool Stage::State::brings_nothing(const std::string& path, const RevisionTreePtr& next) const {
  const FileEntry* after = next ? next->tree.file_at(path) : nullptr;
  if (pending) {
    if (pending->deletions.contains(path)) return !after;
    if (auto file = pending->files.find(path); file != pending->files.end()) {
      const FrozenFile& as = file->second;
      if (!after || after->mode != as.mode) return false;
      return as.published ? as.published->same_content(*after) : is_content_of(as.hash, *after);
    }
  }
  const FileEntry* before = base ? base->tree.file_at(path) : nullptr;
  return before && after ? before->same_content_and_mode(*after) : before == after;
}

std::vector<std::string> Stage::State::contested(const RevisionTreePtr& next, const std::set<std::string>& handled) {
  std::map<std::string, InodePtr> staged;
  for (const auto& difference : survey().differences) staged[difference.path] = difference.inode;
  if (pending) {
    // Frozen, and since then reverted to the base.
    for (const auto& [path, file] : pending->files) staged.try_emplace(path, nullptr);
  }
  std::vector<std::string> paths;
  for (const auto& [path, inode] : staged) {
    if (handled.contains(path) || brings_nothing(path, next)) continue;
    bool is_staged = inode || !pending || !pending->files.contains(path);
    if (is_staged && is_as_frozen(path, inode.get())) continue;
    const FileEntry* after = next ? next->tree.file_at(path) : nullptr;
    if (inode ? after && equals(*inode, *after) : !after) continue;
    paths.push_back(path);
  }
  bool has_own_state = staged_state && !(pending && pending->state == staged_state);
  const Json none;
  const Json& before = base ? base->revision.state : none;
  if (has_own_state && !handled.contains(kStatePath) && (next ? next->revision.state : none) != before)
    paths.emplace_back(kStatePath);
  return paths;
}

Seen Stage::State::seen_at(std::string_view path) {
  const InodePtr at = find(path).inode;
  if (!is_mergeable(at)) return {};
  Seen seen{at, at->generation, published_mode(*at)};
  if (pending) {
    static_cast<void>(measure(*at));
    seen.as_frozen = is_as_frozen(std::string(path), at.get());
  }
  return seen;
}

bool Stage::State::is_as_seen(const MergedPath& decided) {
  Seen now = seen_at(decided.path);
  const Seen& seen = *decided.seen;
  // A write in progress at that moment has ended since, which is another generation, or is still in progress.
  return now.inode == seen.inode &&
         (!now.inode || (now.generation == seen.generation && now.mode == seen.mode && now.inode->writers == 0));
}

Seen Stage::seen_at(std::string_view path) {
  MutexLock lock(state_->mutex);
  return state_->seen_at(path);
}

std::unique_ptr<Stage::Hold> Stage::hold_writers() {
  State& state = *state_;
  MutexLock lock(state.mutex);
  state.gate.close(state.mutex);
  return std::make_unique<Hold>(state);
}

Stage::Hold::~Hold() {
  MutexLock lock(state_.mutex);
  state_.gate.open();
}

Result<std::vector<Invalidation>> Stage::move_base(RevisionTreePtr base, const RevisionId& from) {
  State& state = *state_;
  PLAYFS_CHECK(state.settle_replacements());
  PLAYFS_TRY(auto changes, state.changes());
  MutexLock lock(state.mutex);
  const bool would_publish = rules_of(state.base) != rules_of(base) && !state.unhurried_survey().unpublished.empty();
  if (state.base == base || (state.base && base && state.base->revision.id == base->revision.id))
    return std::vector<Invalidation>();
  if (from != id_of(state.base))
    return fail(ErrorCode::busy, "the work tree has moved to another revision", "try again");
  if (!changes.empty() || state.changes_generation != state.generation || state.pending || state.freezing ||
      state.staged_state || !state.notes.parents.empty())
    return fail(ErrorCode::busy, "there are staged changes", "commit or discard them first");
  if (would_publish)
    return fail(ErrorCode::busy, "it brings other ignore rules, and files here are local-only under the present ones",
                "try again");
  Batch batch = state.rows->begin();
  Rebase rebase(state, batch, std::move(base),
                [&](const std::string& path, const Inode* file)
                    PLAYFS_REQUIRES(state.mutex) { return state.is_as_frozen(path, file); });
  PLAYFS_CHECK(rebase.run());
  if (!rebase.obstructed.empty()) return fail(in_the_way(rebase.obstructed));
  state.notes.replace_conflicted(batch, {});
  state.notes.put_tracked(batch, {});
  PLAYFS_CHECK(batch.commit());
  state.notes.tracked.clear();
  ++state.moves;
  return std::move(rebase.invalidations);
}

}  // namespace playfs::stage
