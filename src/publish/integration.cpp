#include "publish/integration.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/shell.h"
#include "model/chunking.h"
#include "publish/conflicts.h"
#include "publish/dry_run.h"
#include "publish/lost_base.h"
#include "publish/staged_bytes.h"
#include "stage/ignore.h"
#include "wire/json.h"

namespace playfs::publish {

namespace {

/// Somebody may be writing in the tree all the time: from some attempt on, writers are held during the merge, and
/// finally the caller has to try again later.
constexpr int kPatientRounds = 4;
constexpr int kMostRounds = 12;
/// Each may hold a descriptor. Content beyond that is requested again, usually from the cache.
constexpr std::size_t kMostFetched = 64;
/// No record has more.
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

/// Ignores the modes.
bool same_bytes(const FileEntry* a, FileEntry b) {
  if (a) b.mode = a->mode;
  return same_content_and_mode(a, &b);
}

bool is_busy(const Error& error) { return error.code == ErrorCode::busy; }

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

Error still_in_conflict(const stage::Conflicted& conflicted) {
  return Error{ErrorCode::busy, shown_path(conflicted) + " is still in conflict: " + conflicted.reason,
               how_to_resolve(conflicted)};
}

Error cannot_be_brought_in(const std::string& unknown, const RevisionId& head) {
  return Error{ErrorCode::refused_input, "head cannot be merged into the work tree: " + unknown,
               "playfs commit, which publishes a branch; then playfs merge " + shell_word(head.text()) +
                   ", which leaves every file that only one side has for you to decide"};
}

/// The revisions that the tree is made of: its base and what was merged into it.
std::vector<RevisionId> lines(const RevisionTreePtr& base, std::vector<RevisionId> taken_in) {
  taken_in.push_back(base->revision.id);
  return taken_in;
}

Conflict of_one_side(const std::string& path, bool is_ours, const std::string& unknown) {
  return {path,
          ConflictKind::deleted,
          std::string(is_ours ? "only this side has it" : "only the other side has it") +
              "; the side without it may have deleted it: " + unknown,
          {}};
}

}  // namespace

// The three versions.

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

// Conflicts and local-only files.

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
        bool is_ours = same_bytes(ours, wanted->entry);
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

// Whole operations.

/// Until the rules are here, ignored files count as staged.
Status Integration::fetch_rules() {
  for (const auto& rules : stage_.rules_needed()) {
    auto text = upstream_.content(rules.revision, rules.path, *rules.entry);
    if (!text) return fail(text.error().while_doing("read the ignore rules"));
  }
  return {};
}

/// Others' rules apply to new files. Files that were local-only before are not published because of them: stand_on()
/// puts them in conflict, until the user has a rule for them, moves them away, or commits with `--resolved`. This drops
/// the conflicts of those that the new rules still ignore.
Status Integration::forget_what_is_ignored() {
  PLAYFS_CHECK(fetch_rules());
  for (int round = 0;; ++round) {
    const auto seen = stage_.conflicted();
    PLAYFS_TRY(auto left, unresolved(stage_));
    auto list = seen;
    std::erase_if(list, [&](const stage::Conflicted& each) {
      return each.is_kept_here && std::find(left.begin(), left.end(), each) == left.end();
    });
    Status recorded = stage_.record_conflicted(std::move(list), seen);
    if (recorded || !is_busy(recorded.error()) || round == kMostRounds) return recorded;
  }
}

Status Integration::carry_out(const BeginStep& begin, const Stand& stand) {
  PLAYFS_CHECK(fetch_rules());
  for (int round = 0;; ++round) {
    Step step;
    step.on = stage_.base();
    step.taken_in = stage_.merge_parents();
    step.conflicted = stage_.conflicted();
    step.tracked = stage_.tracked();
    PLAYFS_CHECK(begin(step));
    if (step.is_done) return {};
    if (round >= kPatientRounds) step.hold = stage_.hold_writers();
    auto attempt = [&]() -> Status {
      PLAYFS_CHECK(add_local(step));
      if (step.complete) PLAYFS_CHECK(step.complete(step));
      PLAYFS_TRY(auto merged, bring_in(step));
      return stand(merged);
    };
    Status moved = attempt();
    if (moved && step.brings_rules) return forget_what_is_ignored();
    if (moved || !is_busy(moved.error()) || round + 1 == kMostRounds) return moved;
  }
}

Result<Integrated> Integration::update(const RevisionTreePtr& head, const RevisionId& asked_on) {
  fetched_.clear();
  PLAYFS_CHECK(end_dry_run(stage_));
  PLAYFS_TRY(auto open, unresolved(stage_));
  if (!open.empty()) return fail(still_in_conflict(open.front()));
  std::vector<RevisionId> parents;
  bool is_all_back = false;
  RevisionTreePtr stands_on = head;
  auto begin = [&](Step& step) -> Status {
    const RevisionTreePtr& base = step.on;
    parents.clear();
    is_all_back = false;
    if (base) {
      std::vector<RevisionId> stood_on = lines(base, step.taken_in), compared = stood_on;
      compared.push_back(head->revision.id);
      PLAYFS_TRY(auto holdings, Holdings::compare(compared, merging_.links()));
      // A commit ended meanwhile and is based on that head. Nobody asked to undo it.
      step.is_done = base->revision.id != asked_on && holdings.covers(base->revision.id, head->revision.id);
      stands_on = step.is_done ? base : head;
      if (step.is_done) return {};
      for (const auto& each : stood_on)
        if (!holdings.covers(head->revision.id, each)) parents.push_back(each);
    }
    step.parents = parents;
    step.theirs = snapshot_of(head);
    step.below = snapshot_of(base);
    step.next = head;
    step.labels = {kOurLabel, kHeadLabel + head->revision.id.text()};
    step.ending = ".head";
    if (base) {
      PLAYFS_TRY(CommonBase common, merging_.base_of(lines(base, step.taken_in), head->revision.id));
      if (!common.unknown.empty()) return fail(cannot_be_brought_in(common.unknown, head->revision.id));
      step.base = std::move(common.snapshot);
    }
    step.complete = [&](Step& seen) -> Status {
      PLAYFS_TRY(is_all_back, add_what_is_back(seen));
      return {};
    };
    return {};
  };
  PLAYFS_CHECK(carry_out(begin, [&](const auto& merged) { return stage_.integrate(head, merged, parents, settled_); }));
  if (is_all_back) PLAYFS_CHECK(journal_.record_no_lost_base());
  return integrated(stands_on);
}

Result<Integrated> Integration::merge(const RevisionTreePtr& revision) {
  fetched_.clear();
  PLAYFS_CHECK(end_dry_run(stage_));
  PLAYFS_TRY(auto open, unresolved(stage_));
  if (!open.empty()) return fail(still_in_conflict(open.front()));
  PLAYFS_TRY(auto changes, stage_.changes());
  if (!changes.empty() || stage_.staged_state())
    return fail(ErrorCode::busy, "there are staged changes", "playfs commit -m MESSAGE, or playfs discard");
  RevisionTreePtr base;
  std::vector<RevisionId> parents;
  auto begin = [&](Step& step) -> Status {
    base = step.on;  // a clean tree may follow head meanwhile
    parents = step.taken_in;
    if (std::find(parents.begin(), parents.end(), revision->revision.id) == parents.end())
      parents.push_back(revision->revision.id);
    step.parents = parents;
    if (!base) return fail(ErrorCode::invalid_argument, "nothing has been published yet to merge with");
    PLAYFS_TRY(auto holdings, Holdings::compare({base->revision.id, revision->revision.id}, merging_.links()));
    step.is_done = holdings.covers(base->revision.id, revision->revision.id);
    if (step.is_done) return {};
    PLAYFS_TRY(CommonBase common, merging_.base_of(lines(base, step.taken_in), revision->revision.id));
    step.base = std::move(common.snapshot);
    step.unknown = std::move(common.unknown);
    step.theirs = snapshot_of(revision);
    step.below = snapshot_of(base);
    step.next = base;
    step.labels = {kOurLabel, kRevisionLabel + revision->revision.id.text()};
    step.ending = ".branch";
    return {};
  };
  PLAYFS_CHECK(carry_out(begin, [&](const auto& merged) { return stage_.integrate(base, merged, parents, settled_); }));
  return integrated(base);
}

Result<Integrated> Integration::integrated(const RevisionTreePtr& base) const {
  PLAYFS_TRY(auto left, unresolved(stage_));
  return Integrated{base->revision.id, left.size()};
}

/// Whether the published ignore rules differ from those that were frozen.
Result<bool> Integration::has_rules_of_others(const RevisionTreePtr& published) const {
  PLAYFS_TRY(auto layer, stage_.pending());
  const RevisionTreePtr on = stage_.base();
  if (!layer || !on || published->revision.parents == std::vector{on->revision.id}) return false;
  stage::RuleFiles frozen = stage::rules_of(on->tree.manifest());
  for (const auto& path : layer->deletions) frozen.erase(path);
  for (const auto& file : layer->files) {
    frozen.erase(file.path);
    if (stage::is_rules(file.path, file.mode))
      frozen.emplace(file.path, file.published ? content_key(*file.published) : file.hash.hex());
  }
  return stage::rules_of(published->tree.manifest()) != frozen;
}

Status Integration::settle(const std::string& tx, const RevisionTreePtr& base) {
  fetched_.clear();
  PLAYFS_TRY(bool has_their_rules, has_rules_of_others(base));
  if (!has_their_rules) {
    Status settled = stage_.settle(tx, base, {}, settled_);
    if (settled || !is_busy(settled.error())) return settled;
  }
  // Files written since the freeze have other changes in the published revision, or it brings other ignore rules.
  auto begin = [&](Step& step) -> Status {
    step.theirs = snapshot_of(base);
    step.next = base;
    step.labels = {kOurLabel, kRevisionLabel + base->revision.id.text()};
    step.ending = ".head";
    step.clears_the_way = true;
    PLAYFS_CHECK(add_frozen(step));
    step.below = step.base;
    return {};
  };
  return carry_out(begin, [&](const auto& merged) { return stage_.settle(tx, base, merged, settled_); });
}

}  // namespace playfs::publish
