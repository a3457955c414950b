#include "stage/restoring.h"

#include <algorithm>

#include "model/path.h"
#include "stage/ignore.h"

namespace playfs::stage {

namespace {

/// How often to plan again because names changed meanwhile.
constexpr int kMostTries = 5;

Error in_its_way(const std::vector<std::string>& paths) {
  std::string message = paths.front() + " is in the way of what the checkpoint has there";
  if (paths.size() > 1) message += " (and " + std::to_string(paths.size() - 1) + " more)";
  return Error{ErrorCode::busy, std::move(message), "move it out of the way, or restore other paths"};
}

}  // namespace

Restoring::Restoring(Stage::State& state, Snapshot snapshot, UniqueFd folder, std::vector<std::string> paths)
    : state_(state),
      snapshot_(std::move(snapshot)),
      folder_(std::move(folder)),
      paths_(std::move(paths)),
      whole_(paths_.empty() || std::find(paths_.begin(), paths_.end(), "") != paths_.end()) {}

bool Restoring::is_wanted(std::string_view path) const {
  return whole_ ||
         std::any_of(paths_.begin(), paths_.end(), [&](const std::string& top) { return is_at_or_below(path, top); });
}

bool Restoring::is_as_then(Inode& inode, const FrozenFile& file) const {
  if (!is_publishable(inode) || published_mode(inode) != file.mode) return false;
  if (file.published) return inode.is_below() && inode.lower.entry->same_content(*file.published);
  if (inode.is_below()) return false;
  if (inode.kind == Kind::symlink) return inode.target == file.target;
  if (file.spool == 0) return state_.measure(inode) && inode.size == 0;
  // Bytes with two links never change (Spool::is_shared).
  return inode.spool->number() == file.spool && state_.spool->has_same(file.spool, folder_.get());
}

bool Restoring::has_all(const Survey& now) const {
  state_.mutex.assert_held();
  for (const Difference& difference : now.differences) {
    if (!is_wanted(difference.path)) continue;
    const auto file = snapshot_.files.find(difference.path);
    const bool is_kept = difference.inode ? file != snapshot_.files.end() && is_as_then(*difference.inode, file->second)
                                          : snapshot_.deletions.contains(difference.path);
    if (!is_kept) return false;
  }
  for (const Conflicted& each : state_.notes.conflicted) {
    const bool is_kept =
        std::find(snapshot_.conflicted.begin(), snapshot_.conflicted.end(), each) != snapshot_.conflicted.end();
    if (is_wanted(each.path) && !is_kept && !each.path.starts_with('/')) return false;
  }
  const auto& parents = state_.notes.parents;
  return (parents.empty() || parents == snapshot_.parents) &&
         (!whole_ || !state_.staged_state || state_.staged_state == snapshot_.state);
}

Status Restoring::check_paths(const Survey& now) const {
  for (const std::string& top : paths_) {
    auto is_below = [&](const auto& each) { return is_at_or_below(each.first, top); };
    auto differs_below = [&](const Difference& each) { return is_at_or_below(each.path, top); };
    const bool is_known = whole_ || std::any_of(snapshot_.files.begin(), snapshot_.files.end(), is_below) ||
                          has_at_or_below(snapshot_.deletions, top) ||
                          std::any_of(now.differences.begin(), now.differences.end(), differs_below);
    if (!is_known)
      return fail(ErrorCode::not_found,
                  "checkpoint " + std::to_string(snapshot_.head.id) + " has nothing at or below " + top +
                      ", and nothing is staged there",
                  "playfs status");
  }
  return {};
}

/// What the present base has above or below the path, and the checkpoint did not delete.
std::optional<std::string> Restoring::blocked_by_base(const std::string& path) const {
  if (!state_.base) return std::nullopt;
  const Tree& tree = state_.base->tree;
  for (auto slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    std::string above = path.substr(0, slash);
    if (tree.file_at(above) && !snapshot_.deletions.contains(above)) return above;
  }
  if (!tree.directory_at(path)) return std::nullopt;
  const std::string within = path + '/';
  const auto& files = tree.manifest().files;
  for (auto at = files.lower_bound(within); at != files.end() && at->first.starts_with(within); ++at)
    if (!snapshot_.deletions.contains(at->first)) return at->first;
  return std::nullopt;
}

Status Restoring::plan(const Survey& now) {
  state_.mutex.assert_held();
  if (state_.pending || state_.freezing)
    return fail(ErrorCode::busy, "a publication is in progress", "wait for it to finish, or playfs commit --cancel");
  PLAYFS_CHECK(check_paths(now));
  is_overtaken_ = !stands_on_same_base();
  put_.clear();
  removed_.clear();
  dropped_.clear();
  deleted_.clear();
  local_only_ = now.unpublished;
  const PathSet local_only(local_only_.begin(), local_only_.end());
  std::vector<std::string> in_the_way;
  for (const Difference& difference : now.differences) {
    const std::string& path = difference.path;
    if (!is_wanted(path) || snapshot_.files.contains(path) || snapshot_.deletions.contains(path)) continue;
    dropped_.insert(path);
    if (difference.inode) continue;
    deleted_.insert(path);
    const InodePtr there = state_.base && state_.base->tree.file_at(path) ? state_.find(path).inode : nullptr;
    if (there && !there->is_directory()) in_the_way.push_back(path);
  }
  for (const auto& [path, file] : snapshot_.files) {
    if (!is_wanted(path)) continue;
    const InodePtr there = state_.find(path).inode;
    if (there && is_as_then(*there, file)) continue;
    if (local_only.contains(path)) in_the_way.push_back(path);
    else if (auto blocked = blocked_by_base(path)) in_the_way.push_back(*std::move(blocked));
    put_.push_back(&file);
  }
  for (const std::string& path : snapshot_.deletions) {
    const InodePtr there = is_wanted(path) ? state_.find(path).inode : nullptr;
    if (there && !there->is_directory() && !local_only.contains(path)) removed_.push_back(path);
  }
  if (!in_the_way.empty()) return fail(in_its_way(in_the_way));
  const bool changes_state = whole_ && state_.staged_state != snapshot_.state;
  changes_ = put_.size() + removed_.size() + dropped_.size() + (changes_state ? 1 : 0);
  changes_notes_ = parents_after() != state_.notes.parents || conflicted_after() != state_.notes.conflicted;
  return {};
}

bool Restoring::is_prepared() const {
  return std::all_of(put_.begin(), put_.end(), [&](const FrozenFile* file) {
    return prepared_.contains(file->path) && (!needs_hash(*file) || hashes_.contains(file->path));
  });
}

Status Restoring::prepare() {
  for (const FrozenFile* file : put_) {
    if (prepared_.contains(file->path)) continue;
    InodePtr inode;
    {
      MutexLock locked(state_.mutex);
      PLAYFS_TRY(inode, state_.make_unnamed(file->mode));
    }
    inode->target = file->target;
    const auto bits = snapshot_.permissions.find(file->path);
    const bool runs = file->mode == FileMode::executable;
    if (inode->kind == Kind::file && bits != snapshot_.permissions.end() && ((bits->second & 0100) != 0) == runs)
      inode->metadata.permissions = bits->second;
    if (file->spool != 0) {
      PLAYFS_TRY(const UniqueFd bytes, Snapshots::open_bytes(folder_, snapshot_, *file));
      inode->spool->is_partial = true;
      PLAYFS_CHECK(state_.spool->clone(bytes.get(), *inode->spool, file->size));
      copies_.push_back(inode->spool);  // at once: if a later one finds no room, this is not copied again
    }
    prepared_.emplace(file->path, std::move(inode));
  }
  for (const FrozenFile* file : put_) {
    if (!needs_hash(*file) || hashes_.contains(file->path)) continue;
    PLAYFS_TRY(const FileDigest copied, digest(*state_.spool, *prepared_.find(file->path)->second->spool));
    hashes_.emplace(file->path, copied.hash);
  }
  // Synced before a row references them: the bytes that they replace may have been safe.
  return copies_.empty() ? Status() : state_.spool->sync(copies_);
}

Status Restoring::take_names() { return copies_.empty() ? Status() : state_.spool->name(copies_); }

/// Of everything only the checkpoint's own merge can be meant: one that was begun since is in neither, and to name it
/// as merged would take back what it brought. A part leaves the merge that it is restored in.
std::vector<RevisionId> Restoring::parents_after() const {
  if (!whole_) return state_.notes.parents;
  return stands_on_same_base() ? snapshot_.parents : std::vector<RevisionId>();
}

/// At the paths that are restored the list is as it was then. What is kept here only stays in it: it is neither in the
/// checkpoint nor touched.
std::vector<Conflicted> Restoring::conflicted_after() const {
  std::vector<Conflicted> now = state_.notes.conflicted, then;
  std::erase_if(now, [&](const Conflicted& each) { return !each.is_kept_here && is_wanted(each.path); });
  for (Conflicted each : snapshot_.conflicted) {
    if (each.is_kept_here || !is_wanted(each.path)) continue;
    if (auto made = prepared_.find(each.path); made != prepared_.end()) each.ino = made->second->ino;
    then.push_back(std::move(each));
  }
  add_conflicts(now, std::move(then));
  if (is_overtaken_) add_conflicts(now, overtaken(now));
  return now;
}

std::vector<Conflicted> Restoring::overtaken(const std::vector<Conflicted>& known) const {
  std::vector<Conflicted> found;
  auto add = [&](const std::string& path, std::optional<FileMode> mode, std::optional<ContentHash> left) {
    state_.mutex.assert_held();
    const FileEntry* entry = state_.base ? state_.base->tree.file_at(path) : nullptr;
    const auto then = snapshot_.base_contents.find(path);
    const std::string was = then == snapshot_.base_contents.end() ? "" : then->second;
    const bool is_as_then = was == base_content(entry) && (!entry || hash_of(*entry));
    const bool is_the_same = entry && mode ? entry->mode == *mode && is_content_of(*left, *entry) : !entry && !mode;
    auto is_it = [&](const Conflicted& each) { return each.path == path; };
    if (is_as_then || is_the_same || std::any_of(known.begin(), known.end(), is_it)) return;
    found.push_back({.path = path,
                     .reason = "it was published otherwise since checkpoint " + std::to_string(snapshot_.head.id) +
                               ", which is staged over that",
                     .has_markers = false,
                     .left = left});
    if (auto made = prepared_.find(path); made != prepared_.end()) found.back().ino = made->second->ino;
  };
  for (const FrozenFile* file : put_) {
    const auto copied = hashes_.find(file->path);
    const auto left = file->published                   ? hash_of(*file->published)
                      : file->mode == FileMode::symlink ? ContentHash::of(file->target)
                      : copied == hashes_.end()         ? ContentHash::of("")
                                                        : copied->second;
    if (left) add(file->path, file->mode, left);
  }
  // Also those that are deleted already, if this is repeated.
  for (const std::string& path : snapshot_.deletions) {
    auto is_it = [&](const Conflicted& each) { return each.path == path; };
    const auto& before = state_.notes.conflicted;
    if (is_wanted(path) && (std::find(removed_.begin(), removed_.end(), path) != removed_.end() ||
                            std::any_of(before.begin(), before.end(), is_it)))
      add(path, std::nullopt, std::nullopt);
  }
  return found;
}

Tracked Restoring::tracked_after() const {
  if (restores_merge()) return snapshot_.tracked;
  // These were published despite the ignore rules then, and so they are now.
  Tracked after = whole_ ? Tracked() : state_.notes.tracked;
  for (const auto& [path, as] : snapshot_.tracked)
    if (as != TrackedAs::discarded && is_wanted(path) && snapshot_.files.contains(path))
      after.emplace(path, TrackedAs::staged);
  return after;
}

bool Restoring::changes_rules() const {
  return std::any_of(put_.begin(), put_.end(), [](const FrozenFile* file) { return is_rule_file(file->path); }) ||
         std::any_of(removed_.begin(), removed_.end(), is_rule_file) ||
         std::any_of(dropped_.begin(), dropped_.end(), is_rule_file);
}

void Restoring::place(const InodePtr& inode, const FrozenFile& file, std::vector<RescuedRow>& rescued) {
  const RescuedRow& row = snapshot_.published.find(file.path)->second;
  const FileEntry* entry = state_.base ? state_.base->tree.file_at(row.path) : nullptr;
  if (entry && entry->same_content(row.entry)) {
    inode->lower = {state_.base, row.path, entry};
  } else {
    Revision revision;  // with only that file
    revision.id = RevisionId(row.revision);
    revision.project = ProjectId(row.project);
    revision.manifest.tx = row.tx;
    revision.manifest.files.emplace(row.path, row.entry);
    auto tree = std::make_shared<RevisionTree>(std::move(revision));
    entry = tree->tree.file_at(row.path);
    inode->lower = {std::move(tree), row.path, entry};
    rescued.push_back(row);
  }
  inode->spool = nullptr;
}

/// What a merge had put unseen stays so.
void Restoring::conceal(Batch& batch) const {
  if (!state_.instructions.hides_any()) return;
  std::set<std::uint64_t> concealed = state_.still_concealed();
  for (const FrozenFile* file : put_)
    if (snapshot_.concealed.contains(file->path)) concealed.insert(prepared_.find(file->path)->second->ino);
  state_.instructions.conceal(batch, std::move(concealed));
}

Restored Restoring::outcome() const {
  state_.mutex.assert_held();
  Restored restored;
  restored.base_then = snapshot_.head.base;
  restored.base_now = id_of(state_.base);
  return restored;
}

Result<Restored> Restoring::apply() {
  state_.mutex.assert_held();
  std::map<std::string, MergedPath> paths;
  std::vector<RescuedRow> rescued;
  for (const FrozenFile* file : put_) {
    const InodePtr& inode = prepared_.find(file->path)->second;
    if (file->published) place(inode, *file, rescued);
    paths.emplace(file->path, MergedPath{file->path, MergedPath::Action::put, {}, inode});
  }
  for (const std::string& path : removed_) paths.emplace(path, MergedPath{path, MergedPath::Action::remove, {}, {}});
  Rebase::Decisions decisions;
  for (const auto& [path, decided] : paths) decisions.emplace(path, &decided);

  Restored restored = outcome();
  for (const auto& [path, decided] : paths) restored.paths.insert(path);
  restored.paths.insert(dropped_.begin(), dropped_.end());
  const bool changes_state = whole_ && state_.staged_state != snapshot_.state;
  if (changes_state) restored.paths.insert(kStatePath);

  std::vector<Conflicted> conflicted = conflicted_after();
  const std::vector<RevisionId> parents = parents_after();
  Tracked tracked = tracked_after();
  if (changes_rules())
    add_conflicts(conflicted, state_.kept_here_by_rules(
                                  local_only_, conflicted,
                                  "it is kept here only, and under the restored ignore rules it would be published"));
  Batch batch = state_.rows->begin();
  Rebase rebase(
      state_, batch, state_.base,
      [&](const std::string& path, const Inode* file) {
        return dropped_.contains(path) && !(file && deleted_.contains(path));
      },
      std::move(decisions));
  rebase.replaced_by = "it was replaced by what checkpoint " + std::to_string(snapshot_.head.id) + " has";
  PLAYFS_CHECK(rebase.run());
  if (!rebase.obstructed.empty()) return fail(in_its_way(rebase.obstructed));
  for (const RescuedRow& row : rescued) state_.rows->put_rescued(row);
  conceal(batch);
  if (changes_state && snapshot_.state) state_.rows->put_value("state", *snapshot_.state);
  else if (changes_state) state_.rows->drop_value("state");
  state_.notes.put_tracked(batch, tracked);
  MergeNotes::put_parents(batch, parents);
  state_.notes.replace_conflicted(batch, std::move(conflicted));
  PLAYFS_CHECK(batch.commit());
  if (changes_state) state_.staged_state = snapshot_.state;
  state_.notes.parents = parents;
  state_.notes.tracked = std::move(tracked);
  ++state_.moves;
  restored.changed = std::move(rebase.invalidations);
  return restored;
}

bool Stage::has_kept(std::uint64_t id, std::vector<std::string> paths, const Hold&) {
  State& state = *state_;
  auto snapshot = state.snapshots.read(id);
  auto folder = snapshot ? state.snapshots.open(id) : fail(snapshot.error());
  if (!folder) return false;
  const Restoring restoring(state, *std::move(snapshot), *std::move(folder), std::move(paths));
  MutexLock lock(state.mutex);
  return restoring.has_all(state.unhurried_survey());
}

Result<Restored> Stage::restore(std::uint64_t id, const std::vector<std::string>& paths) {
  State& state = *state_;
  PLAYFS_TRY(Snapshot snapshot, state.snapshots.read(id));
  PLAYFS_TRY(UniqueFd folder, state.snapshots.open(id));
  Restoring restoring(state, std::move(snapshot), std::move(folder), paths);
  for (int tries = 0; tries < kMostTries; ++tries) {
    PLAYFS_CHECK(state.settle_replacements());
    // Afterwards, what was rewritten with equal bytes is known to be equal.
    PLAYFS_TRY([[maybe_unused]] auto changes, state.changes());
    {
      MutexLock lock(state.mutex);
      PLAYFS_CHECK(restoring.plan(state.unhurried_survey()));
      if (restoring.has_nothing_to_do()) return restoring.outcome();
    }
    auto prepared = restoring.prepare();
    if (!prepared && prepared.error().code == ErrorCode::no_space && state.make_room(false))
      prepared = restoring.prepare();
    PLAYFS_CHECK(prepared);
    // Whatever is written until the end is in neither the checkpoint that is made now nor dropped.
    const auto hold = hold_writers();
    {
      MutexLock lock(state.mutex);
      PLAYFS_CHECK(restoring.plan(state.unhurried_survey()));
      if (!restoring.is_prepared()) continue;
    }
    PLAYFS_TRY(const auto before, state.keep_staged("before restoring checkpoint " + std::to_string(id)));
    auto attempt = [&]() -> Result<std::optional<Restored>> {
      PLAYFS_CHECK(restoring.take_names());
      MutexLock lock(state.mutex);
      PLAYFS_CHECK(restoring.plan(state.unhurried_survey()));
      if (!restoring.is_prepared()) return std::optional<Restored>();
      std::set<std::string> in_conflict;
      for (const Conflicted& each : state.notes.conflicted) in_conflict.insert(each.path);
      PLAYFS_TRY(Restored restored, restoring.apply());
      // If this fails, more stays in conflict than has to.
      static_cast<void>(state.forget_ignored(in_conflict));
      return std::optional(std::move(restored));
    };
    auto restored = attempt();
    if (restored && *restored) {
      if (before) (*restored)->before = before->id;
      // What is restored path by path may be needed again, however old it is.
      if (before) state.drop_old_snapshots(id);
      return **std::move(restored);
    }
    // Attempts that change nothing must not push out older checkpoints.
    if (before && state.snapshots.drop(before->id)) state.housekeeper->want_removal(false);
    if (!restored) return fail(restored.error());
  }
  return fail(ErrorCode::busy, "the work tree keeps changing", "try again");
}

}  // namespace playfs::stage
