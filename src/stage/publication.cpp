// Freezing what is staged, settling it or returning it to the stage; changing the base; discarding.
#include <algorithm>
#include <iterator>

#include "model/plan.h"
#include "stage/ignore.h"
#include "stage/rebase.h"
#include "stage/store/entry_codec.h"

namespace playfs::stage {

namespace {

Error in_the_way(const std::vector<std::string>& paths) {
  std::string message = paths.front() + " is local-only and in the way of a published file";
  if (paths.size() > 1) message += " (and " + std::to_string(paths.size() - 1) + " more)";
  return Error{ErrorCode::busy, std::move(message), "move it out of the way"};
}

Error other_conflicts() { return Error{ErrorCode::busy, "the list of conflicts has changed", "try again"}; }

}  // namespace

Result<std::optional<Frozen>> Stage::freeze(const std::string& tx, const std::optional<std::vector<Conflicted>>& seen) {
  PLAYFS_CHECK(state_->settle_replacements());
  return state_->freeze(tx, seen);
}

Result<std::optional<Frozen>> Stage::State::freeze(const std::string& tx,
                                                   const std::optional<std::vector<Conflicted>>& seen) {
  Survey found;
  std::map<std::string, Candidate> candidates;
  Frozen layer;
  {
    MutexLock locked(mutex);
    if (pending && pending->tx == tx) return std::optional(pending_layer());
    if (pending || freezing) return fail(ErrorCode::busy, "another publication has started");
    if (seen && *seen != conflicted) return fail(other_conflicts());
    freezing = true;  // from here on, no discard changes that list
    // Answers most questions now, so that little is left once everyone has to wait.
    static_cast<void>(unhurried_survey());
    while (gate_closed) moved_on.wait(mutex);
    // One moment for all files: writes in progress end, new ones wait.
    gate_closed = true;
    while (writers > 0) moved_on.wait(mutex);
    found = unhurried_survey();
    for (auto& difference : found.differences) {
      if (difference.inode) candidates.emplace(difference.path, candidate_of(*difference.inode));
    }
    layer.tx = tx;
    layer.base = id_of(base);
    layer.state = staged_state;
    layer.merge_parents = merge_parents;
    gate_closed = false;
    moved_on.notify_all();
  }
  auto result = freeze_candidates(std::move(layer), found, candidates);
  MutexLock locked(mutex);
  freezing = false;
  if (!pending) frozen.clear();
  changed();
  return result;
}

Stage::State::Candidate Stage::State::candidate_of(Inode& inode) {
  Candidate candidate;
  candidate.file.mode = published_mode(inode);
  if (inode.is_below()) {
    candidate.file.published = *inode.lower.entry;
    candidate.file.published->mode = candidate.file.mode;
  } else if (inode.kind == Kind::symlink) {
    candidate.file.target = inode.target;
    candidate.file.size = inode.target.size();
    candidate.file.hash = ContentHash::of(inode.target);
  } else {
    candidate.bytes = inode.spool;
    if (measure(inode)) candidate.file.size = inode.size;
    frozen.emplace(inode.spool->number(), inode.spool);
  }
  return candidate;
}

Result<std::optional<Frozen>> Stage::State::freeze_candidates(Frozen layer, const Survey& found,
                                                              std::map<std::string, Candidate>& candidates) {
  if (found.unread_rules) return fail(*found.unread_rules);  // local-only files could be published
  if (!found.missing_rules.empty())
    return fail(ErrorCode::offline,
                "the ignore rules in " + found.missing_rules.front().path + " have not been fetched yet");
  std::vector<SpoolFilePtr> files;
  for (const auto& difference : found.differences) {
    if (!difference.inode) {
      layer.deletions.push_back(difference.path);
      continue;
    }
    Candidate& candidate = candidates.find(difference.path)->second;
    if (candidate.bytes) {
      PLAYFS_CHECK(check_file_size(difference.path, candidate.file.size));  // hashing it could take hours
      auto digested = digest(*spool, *candidate.bytes);
      if (!digested) return fail(digested.error().while_doing(difference.path));
      const FileDigest& bytes = *digested;
      candidate.file.size = bytes.size;
      candidate.file.hash = bytes.hash;
      if (difference.uncertain && is_content_of(bytes.hash, *difference.base)) continue;
      if (bytes.size > 0) {
        candidate.file.spool = candidate.bytes->number();
        files.push_back(candidate.bytes);
      }
    }
    candidate.file.path = difference.path;
    layer.files.push_back(candidate.file);
  }
  if (layer.files.empty() && layer.deletions.empty() && !layer.state && layer.merge_parents.empty())
    return std::optional<Frozen>();
  PLAYFS_CHECK(spool->sync(files));

  {
    MutexLock locked(mutex);
    Batch batch = rows->begin();
    PLAYFS_CHECK(settle_replacements(batch));
    rows->put_value("pending_tx", layer.tx);
    rows->put_value("pending_base", layer.base.text());
    if (layer.state) rows->put_value("pending_state", *layer.state);
    for (const auto& file : layer.files) rows->put_pending(file);
    for (const auto& [path, each] : candidates) {
      if (each.file.spool != 0) put_size(batch, each.bytes, each.file.size, each.file.size);
    }
    for (const auto& path : layer.deletions) rows->put_pending_deletion(path);
    PLAYFS_CHECK(batch.commit());
    pending = Pending{layer.tx, layer.base, {}, {layer.deletions.begin(), layer.deletions.end()}, layer.state};
    for (const auto& file : layer.files) pending->files.emplace(file.path, file);
    frozen.clear();
    for (auto& file : files) {
      file->keep = true;
      frozen.emplace(file->number(), file);
    }
  }
  PLAYFS_CHECK(rows->sync());
  return std::optional(std::move(layer));
}

Frozen Stage::State::pending_layer() const {
  // Nothing is merged in while a layer is pending, so the current parents belong to it.
  Frozen layer{pending->tx,    pending->base, {}, {pending->deletions.begin(), pending->deletions.end()},
               pending->state, merge_parents};
  for (const auto& [path, file] : pending->files) layer.files.push_back(file);
  return layer;
}

Result<std::optional<Frozen>> Stage::pending() const {
  MutexLock lock(state_->mutex);
  if (!state_->pending) return std::optional<Frozen>();
  return std::optional(state_->pending_layer());
}

Result<std::string> Stage::read_frozen(const FrozenFile& file) const {
  PLAYFS_TRY(std::string data, read_frozen(file, 0, file.size));
  if (data.size() != file.size) return fail(ErrorCode::corrupt, file.path + ": its staged bytes are truncated");
  return data;
}

Result<std::string> Stage::read_frozen(const FrozenFile& file, std::uint64_t offset, std::size_t size) const {
  if (file.published) return fail(ErrorCode::invalid_argument, file.path + ": its bytes are in the base");
  if (offset >= file.size) return std::string();
  size = static_cast<std::size_t>(std::min<std::uint64_t>(size, file.size - offset));
  if (file.mode == FileMode::symlink) return file.target.substr(static_cast<std::size_t>(offset), size);
  SpoolFilePtr bytes;
  {
    MutexLock lock(state_->mutex);
    auto found = state_->frozen.find(file.spool);
    if (found == state_->frozen.end()) return fail(ErrorCode::not_found, file.path + ": not part of the publication");
    bytes = found->second;
  }
  PLAYFS_TRY(SharedFd fd, state_->spool->descriptor(*bytes, false));
  if (!fd) return fail(ErrorCode::corrupt, file.path + ": its staged bytes are missing");
  return read_at(fd->get(), offset, size);
}

void Stage::State::drop_pending() {
  rows->drop_pending();
  rows->drop_value("pending_tx");
  rows->drop_value("pending_base");
  rows->drop_value("pending_state");
}

void Stage::State::forget_pending() {
  std::unordered_set<const SpoolFile*> in_use;
  for (const auto& [ino, inode] : by_ino) {
    if (inode->has_row && inode->spool) in_use.insert(inode->spool.get());
  }
  for (const auto& [number, each] : replacements) in_use.insert(each.old.get());
  for (auto& [number, file] : frozen) file->keep = in_use.contains(file.get());
  frozen.clear();
  pending.reset();
  changed();
}

bool Stage::State::brings_nothing(const std::string& path, const RevisionTreePtr& next) const {
  const FileEntry* after = next ? next->tree.file_at(path) : nullptr;
  if (pending) {
    if (pending->deletions.contains(path)) return !after;
    if (auto file = pending->files.find(path); file != pending->files.end()) {
      const FrozenFile& as = file->second;
      if (!after || after->mode != as.mode) return false;
      return as.published ? same_content(*as.published, *after) : is_content_of(as.hash, *after);
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

namespace {
Error has_moved_on() { return Error{ErrorCode::busy, "the work tree's base has changed", "playfs update"}; }

void append_sorted(std::vector<Conflicted>& list, std::vector<Conflicted> added) {
  std::move(added.begin(), added.end(), std::back_inserter(list));
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
}

Error is_contested(const std::vector<std::string>& paths) {
  return Error{
      ErrorCode::busy,
      paths.front().substr(paths.front().starts_with('/') ? 1 : 0) + " was changed both here and in the revision",
      "playfs update"};
}

const std::string& text_of(const std::string& text) { return text; }
const std::string& text_of(const RevisionId& id) { return id.text(); }

std::string join_lines(const auto& items) {
  std::string text;
  for (const auto& each : items) text += (text.empty() ? "" : "\n") + text_of(each);
  return text;
}
}  // namespace

void Stage::State::put_merge_parents(const std::vector<RevisionId>& parents) {
  if (parents.empty()) rows->drop_value("merge_parents");
  else rows->put_value("merge_parents", join_lines(parents));
}

void Stage::State::put_tracked(const Tracked& paths) {
  if (paths == tracked) return;
  if (paths.empty()) rows->drop_value("tracked");
  else rows->put_value("tracked", encode_tracked(paths));
}

void Stage::State::put_conflicted(const std::vector<Conflicted>& list) {
  if (list.empty()) rows->drop_value("conflicted");
  else rows->put_value("conflicted", encode_conflicted(list));
}

void Stage::State::replace_conflicted(Batch& batch, std::vector<Conflicted> list) {
  if (list.empty() && conflicted.empty() && accepted_by.empty()) return;
  put_conflicted(list);
  rows->drop_value("accepted_by");
  batch.after_commit([this, list = std::move(list)]() PLAYFS_NO_ANALYSIS {
    conflicted = list;
    accepted_by.clear();
  });
}

void Stage::State::hand_on_conflicts(Batch& batch, const Inode& gone, const Inode& by) {
  if (gone.names.size() > 1) return;
  auto is_there = [&](const Conflicted& each) { return each.ino == gone.ino; };
  if (std::none_of(conflicted.begin(), conflicted.end(), is_there)) return;
  std::vector<Conflicted> list = conflicted;
  for (auto& each : list)
    if (is_there(each)) each.ino = by.ino;
  put_conflicted(list);
  batch.after_commit([this, list = std::move(list)]() PLAYFS_NO_ANALYSIS { conflicted = list; });
}

std::vector<RevisionId> Stage::merge_parents() const {
  MutexLock lock(state_->mutex);
  return state_->merge_parents;
}

Tracked Stage::tracked() const {
  MutexLock lock(state_->mutex);
  return state_->tracked;
}

std::vector<Conflicted> Stage::conflicted() const {
  MutexLock lock(state_->mutex);
  return state_->shown_conflicts();
}

std::vector<Conflicted> Stage::State::shown_conflicts() const {
  return pending ? std::vector<Conflicted>() : conflicted;
}

Status Stage::record_conflicted(std::vector<Conflicted> conflicted,
                                const std::optional<std::vector<Conflicted>>& seen) {
  State& state = *state_;
  {
    MutexLock lock(state.mutex);
    if (seen && *seen != state.shown_conflicts()) return fail(other_conflicts());
    if (state.conflicted == conflicted) return state.rows->check_disk();
    Batch batch = state.rows->begin();
    state.replace_conflicted(batch, std::move(conflicted));
    PLAYFS_CHECK(batch.commit());
  }
  return state.rows->sync();
}

Status Stage::accept_conflicted(const std::string& tx) {
  State& state = *state_;
  {
    MutexLock lock(state.mutex);
    if (state.conflicted.empty()) return {};
    std::set<std::string> accepted_by = state.accepted_by;
    accepted_by.insert(tx);
    Batch batch = state.rows->begin();
    state.rows->put_value("accepted_by", join_lines(accepted_by));
    PLAYFS_CHECK(batch.commit());
    state.accepted_by = std::move(accepted_by);
  }
  return state.rows->sync();
}

bool Stage::is_accepted_by(const std::string& tx) const {
  MutexLock lock(state_->mutex);
  return state_->accepted_by.contains(tx);
}

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
    PLAYFS_TRY(invalidations, state.stand_on(std::move(base), merged, [&](Batch& batch) PLAYFS_NO_ANALYSIS {
      state.put_merge_parents(parents);
      batch.after_commit([&]() PLAYFS_NO_ANALYSIS { state.merge_parents = parents; });
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
    PLAYFS_TRY(invalidations, state.stand_on(std::move(base), merged, [&](Batch& batch) PLAYFS_NO_ANALYSIS {
      state.drop_pending();
      bool state_was_published = state.staged_state == state.pending->state && !merged.has_state;
      if (state_was_published) state.rows->drop_value("state");
      state.put_merge_parents({});
      // What was in conflict is published. What is in conflict from now on comes from this merge.
      if (!merged.conflicted) state.replace_conflicted(batch, {});
      batch.after_commit([&state, state_was_published]() PLAYFS_NO_ANALYSIS {
        if (state_was_published) state.staged_state.reset();
        state.merge_parents.clear();
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
  if (merged.seen_parents && *merged.seen_parents != merge_parents) return fail(has_moved_on());
  if (merged.seen_tracked && *merged.seen_tracked != tracked) return fail(has_moved_on());
  if (merged.seen_conflicted && *merged.seen_conflicted != shown_conflicts()) return fail(other_conflicts());
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
  // A local-only file was seen at that path; moved since, it would be published from its new one.
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
          PLAYFS_NO_ANALYSIS { return !handled.contains(path) && is_as_frozen(path, file); },
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
    // What was local-only under the present rules is not published unasked under theirs. Only now is it certain what
    // that is.
    if (merged.brings_rules)
      append_sorted(list,
                    kept_here_by_rules(local_only, list, "it is local-only, but their ignore rules would publish it"));
    replace_conflicted(batch, std::move(list));
  }
  put_tracked(merged.tracked);
  if (merged.state) rows->put_value("state", *merged.state);
  else if (merged.has_state) rows->drop_value("state");
  batch.after_commit([&]() PLAYFS_NO_ANALYSIS {
    if (merged.has_state) staged_state = merged.state;
    tracked = merged.tracked;
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

namespace {
/// Whether a merge can be given the inode: not a directory, which is just what is in it.
bool is_mergeable(const InodePtr& inode) { return inode && !inode->is_directory(); }
}  // namespace

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
  while (state.gate_closed) state.moved_on.wait(state.mutex);
  state.gate_closed = true;
  while (state.writers > 0) state.moved_on.wait(state.mutex);
  return std::make_unique<Hold>(state);
}

Stage::Hold::~Hold() {
  MutexLock lock(state_.mutex);
  state_.gate_closed = false;
  state_.moved_on.notify_all();
}

Status Stage::thaw(const std::string& tx) {
  State& state = *state_;
  {
    MutexLock lock(state.mutex);
    if (!state.pending) return {};
    if (state.pending->tx != tx) return fail(ErrorCode::not_found, "there is no pending publication " + tx);
    Batch batch = state.rows->begin();
    state.drop_pending();
    PLAYFS_CHECK(batch.commit());
    state.forget_pending();
    state.moved_on.notify_all();
  }
  return state.rows->sync();
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
      state.staged_state || !state.merge_parents.empty())
    return fail(ErrorCode::busy, "there are staged changes", "commit or discard them first");
  if (would_publish)
    return fail(ErrorCode::busy, "it brings other ignore rules, and files here are local-only under the present ones",
                "try again");
  Batch batch = state.rows->begin();
  Rebase rebase(state, batch, std::move(base), [&](const std::string& path, const Inode* file) PLAYFS_NO_ANALYSIS {
    return state.is_as_frozen(path, file);
  });
  PLAYFS_CHECK(rebase.run());
  if (!rebase.obstructed.empty()) return fail(in_the_way(rebase.obstructed));
  state.replace_conflicted(batch, {});
  state.put_tracked({});
  PLAYFS_CHECK(batch.commit());
  state.tracked.clear();
  ++state.moves;
  return std::move(rebase.invalidations);
}

namespace {
bool has_markers(const Conflicted& each) { return each.has_markers; }

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

Result<Discarded> Stage::discard(std::string_view path, bool only_try) {
  State& state = *state_;
  Discarded all;
  std::optional<std::set<std::string>> listed;  // as staged before any rule file was discarded, and
  std::uint64_t listed_at = 0;                  // after this many updates
  std::optional<std::set<std::string>> in_conflict_before;
  std::set<std::string> rules_dropped;  // one that a merge brought is still listed then, as deleted
  auto is_rules = [&](const Change& change) { return is_rule_file(change.path) && is_at_or_below(change.path, path); };
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
    // What an update brought in since is not in the list, and half of it would stay: files with markers, without
    // conflicts.
    if (state.moves != moves) continue;
    if (listed && listed_at != moves) {
      listed.reset();
      rules_dropped.clear();
    }
    if (listed) std::erase_if(changes, [&](const Change& change) { return !listed->contains(change.path); });
    if (!in_conflict_before) {
      in_conflict_before.emplace();
      for (const auto& each : state.conflicted) in_conflict_before->insert(each.path);
    }
    const auto kept = state.kept_by_discard(path);
    auto rules = std::find_if(changes.begin(), changes.end(), [&](const Change& change) {
      return is_rules(change) && change.path != path && !rules_dropped.contains(change.path) &&
             !has_at_or_above(kept, change.path);
    });
    if (only_try) return state.discard(path, changes, unpublished, true);
    const bool is_last = rules == changes.end();
    // Rule files first, one by one: what those of the base ignore is then not staged, and stays.
    if (!is_last) PLAYFS_CHECK(state.discard(path, changes, unpublished, true));
    if (!listed) {
      listed.emplace();
      listed_at = moves;
      for (const auto& change : changes) listed->insert(change.path);
    }
    PLAYFS_TRY(auto some, state.discard(is_last ? path : rules->path, changes, unpublished, false));
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
  if (std::none_of(conflicted.begin(), conflicted.end(), is_new)) return {};
  const Survey now = unhurried_survey();
  if (now.unread_rules || !now.missing_rules.empty()) return {};
  PathSet staged;
  for (const auto& difference : now.differences) staged.insert(difference.path);
  std::vector<Conflicted> left = conflicted;
  std::erase_if(left, [&](const Conflicted& each) { return is_new(each) && !has_at_or_below(staged, each.path); });
  if (left == conflicted) return {};
  Batch batch = rows->begin();
  put_conflicted(left);
  PLAYFS_CHECK(batch.commit());
  conflicted = std::move(left);
  return {};
}

PathSet Stage::State::kept_by_discard(std::string_view path) {
  PathSet kept;
  for (const auto& each : conflicted)
    if (each.is_kept_here && !is_at_or_below(path, each.path) && find(each.path).inode) kept.insert(each.path);
  return kept;
}

Result<Discarded> Stage::State::discard(std::string_view path, const std::vector<Change>& changes,
                                        const std::vector<std::string>& unpublished, bool only_try) {
  PathSet dropped;
  PathSet deleted;  ///< those of them where a file, if there is one, is local-only
  const PathSet kept_here = kept_by_discard(path);
  for (const auto& change : changes) {
    if (!is_at_or_below(change.path, path) || has_at_or_above(kept_here, change.path)) continue;
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
    added = kept_here_by_rules(unpublished, conflicted,
                               "it is kept here only, and without the discarded ignore rules it would be published");
  // The list of conflicts ends with the publication.
  if (pending && !added.empty())
    return fail(ErrorCode::busy,
                "a publication is in progress, and the rules that ignore " + added.front().path + " would be dropped",
                "wait for the publication to finish");
  const std::optional<std::string> pending_state = pending ? pending->state : std::nullopt;
  if (path.empty() && pending_state && staged_state == pending_state)
    return fail(ErrorCode::busy, "the project's state is being published", "wait for the publication to finish");
  const bool drops_state = path.empty() && staged_state;
  std::vector<std::string> obstructed;  // what was published cannot come back there
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
  // What blocks something that was not to come back is no obstacle.
  std::erase_if(rebase.obstructed, [&](const std::string& each) { return !has_at_or_below(dropped, each); });
  if (!rebase.obstructed.empty()) return fail(in_the_way(rebase.obstructed));
  // A merge that goes on deletes what was discarded of it, so that stays listed.
  auto still_tracked = tracked;
  std::erase_if(still_tracked,
                [&](const auto& each) { return is_at_or_below(each.first, path) && each.second == TrackedAs::staged; });
  for (auto& [each, as] : still_tracked)
    if (is_at_or_below(each, path)) as = TrackedAs::discarded;
  auto is_discarded = [&](const Tracked& by, const Change& change) {
    auto at = by.find(change.path);
    return change.kind == ChangeKind::deleted && at != by.end() && at->second == TrackedAs::discarded;
  };
  const bool drops_all = path.empty() && !pending;
  auto moved_to = [&](const Conflicted& each) PLAYFS_NO_ANALYSIS {
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
  std::vector<Conflicted> left = conflicted;
  std::erase_if(left, [&](const Conflicted& each) {
    if (kept_here.contains(each.path)) return false;
    if (drops_all) return true;
    // Their version is still beside it, or markers are elsewhere: neither may be published unasked.
    if (!each.beside.empty()) return false;
    if (dropped.contains(each.path) || is_at_or_below(each.path, path)) return !is_left_elsewhere(each);
    return is_dropped_elsewhere(each);
  });
  Discarded discarded;
  for (const auto& change : changes)
    if (dropped.contains(change.path) && !is_discarded(tracked, change)) discarded.paths.insert(change.path);
  for (const auto& each : conflicted) {
    const bool goes = each.beside.empty() && is_at_or_below(each.path, path) &&
                      std::find(left.begin(), left.end(), each) == left.end();
    if (goes) discarded.paths.insert(each.path);
  }
  if (drops_state) discarded.paths.insert(kStatePath);
  if (only_try) return discarded;
  const bool drops_something = !dropped.empty() || left.size() < conflicted.size();
  // A local-only file is not of the merge; if it is staged, it is among the changes.
  const bool stays_in_conflict = std::any_of(left.begin(), left.end(), [&](const Conflicted& each) PLAYFS_NO_ANALYSIS {
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
  if (!added.empty()) append_sorted(left, added);
  if (drops_state && pending_state) rows->put_value("state", *pending_state);
  else if (drops_state) rows->drop_value("state");
  put_tracked(still_tracked);
  if (drops_merge) put_merge_parents({});
  if (!drops_merge && std::any_of(conflicted.begin(), conflicted.end(), has_markers) &&
      std::none_of(left.begin(), left.end(), has_markers))
    left.push_back(markers_elsewhere());
  put_conflicted(left);
  if (!added.empty()) rows->drop_value("accepted_by");
  PLAYFS_CHECK(batch.commit());
  if (!added.empty()) accepted_by.clear();
  if (drops_state) staged_state = pending_state;
  if (drops_merge) merge_parents.clear();
  tracked = std::move(still_tracked);
  conflicted = std::move(left);
  discarded.changed = std::move(rebase.invalidations);
  return discarded;
}

}  // namespace playfs::stage
