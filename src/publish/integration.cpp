#include "publish/integration.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "model/chunking.h"
#include "model/path.h"
#include "publish/rest.h"
#include "wire/json.h"

namespace playfs::publish {

namespace {

/// Somebody is writing in the tree all the time: then the caller tries again later.
constexpr int kMostRounds = 8;
/// The name under which a merged file is written before it takes its place. Never published: a dot and an ending of
/// editors' temporaries.
constexpr const char* kTemporaryName = ".playfs-merge.tmp~";

stage::InodePtr find(stage::Stage& stage, const std::string& path) {
  stage::InodePtr at = stage.root();
  std::string_view rest = path;
  while (at && !rest.empty()) {
    auto slash = rest.find('/');
    auto next = stage.lookup(at, rest.substr(0, slash));
    at = next ? *next : nullptr;
    rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
  }
  return at;
}

/// Of a file with bytes of its own.
Result<std::string> bytes_of(stage::Stage& stage, const stage::InodePtr& inode) {
  PLAYFS_TRY(auto attributes, stage.attributes(inode));
  if (attributes.kind == stage::Kind::symlink) return stage.symlink_target(inode);
  return stage.read(inode, 0, attributes.size);
}

bool same(const FileEntry* a, const FileEntry* b) { return a && b ? a->same_content_and_mode(*b) : a == b; }

const FileEntry* entry_at(const Manifest& manifest, const std::string& path) {
  auto found = manifest.files.find(path);
  return found == manifest.files.end() ? nullptr : &found->second;
}

FileEntry entry_of_bytes(std::string bytes, FileMode mode) {
  FileEntry entry;
  entry.hash_claim = ContentHash::of(bytes).hex();
  entry.size_claim = bytes.size();
  entry.mode = mode;
  entry.encoding = encoding_for(bytes);
  entry.inline_text = encode_content(bytes, entry.encoding);
  return entry;
}

}  // namespace

Result<std::vector<stage::Conflicted>> unresolved(stage::Stage& stage) {
  std::vector<stage::Conflicted> left;
  for (const auto& each : stage.conflicted()) {
    std::optional<std::string> now;
    if (each.path.starts_with(stage::kStatePath)) {
      now = stage.staged_state().value_or("");
    } else if (auto inode = find(stage, each.path)) {
      PLAYFS_TRY(auto attributes, stage.attributes(inode));
      bool is_file = attributes.kind == stage::Kind::file || attributes.kind == stage::Kind::symlink;
      if (!is_file || stage.lower_content(inode)) continue;  // what others published is there, whole
      PLAYFS_TRY(now, bytes_of(stage, inode));
    }
    bool is_as_left = now ? each.left == ContentHash::of(*now) : !each.left;
    if (is_as_left || (each.has_markers && now && has_conflict_markers(*now))) left.push_back(each);
  }
  return left;
}

// The versions.

Result<Snapshot> Integration::local() const {
  Snapshot version = snapshot_of(stage_.base());
  PLAYFS_TRY(auto changes, stage_.changes());
  for (const auto& change : changes) {
    version.manifest.files.erase(change.path);
    auto inode = find(stage_, change.path);
    if (!inode) continue;
    PLAYFS_TRY(auto attributes, stage_.attributes(inode));
    FileMode mode = attributes.kind == stage::Kind::symlink ? FileMode::symlink
                    : (attributes.permissions & 0100) != 0  ? FileMode::executable
                                                            : FileMode::regular;
    if (attributes.kind != stage::Kind::file && attributes.kind != stage::Kind::symlink) continue;
    if (auto lower = stage_.lower_content(inode)) {
      version.manifest.files[change.path] = *lower->entry;
      version.manifest.files[change.path].mode = mode;
      continue;
    }
    PLAYFS_TRY(std::string bytes, bytes_of(stage_, inode));
    version.manifest.files[change.path] = entry_of_bytes(std::move(bytes), mode);
  }
  if (auto state = stage_.staged_state()) {
    PLAYFS_TRY(version.state, wire::parse_json(*state));
  }
  return version;
}

Result<Snapshot> Integration::frozen() const {
  Snapshot version = snapshot_of(stage_.base());
  PLAYFS_TRY(auto layer, stage_.pending());
  if (!layer) return version;
  for (const auto& path : layer->deletions) version.manifest.files.erase(path);
  for (const auto& file : layer->files) {
    if (file.published) {
      version.manifest.files[file.path] = *file.published;
      version.manifest.files[file.path].mode = file.mode;
      continue;
    }
    PLAYFS_TRY(std::string bytes, stage_.read_frozen(file));
    version.manifest.files[file.path] = entry_of_bytes(std::move(bytes), file.mode);
  }
  if (layer->state) {
    PLAYFS_TRY(version.state, wire::parse_json(*layer->state));
  }
  return version;
}

// Writing into the tree.

Status Integration::put(const std::string& path, const std::string& content, FileMode mode) {
  PLAYFS_TRY(auto owner, stage_.attributes(stage_.root()));
  stage::Creation creation{.permissions = 0755, .uid = owner.uid, .gid = owner.gid};
  stage::InodePtr directory = stage_.root();
  std::string_view name = path;
  for (auto slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/')) {
    auto found = stage_.lookup(directory, name.substr(0, slash));
    if (!found) {
      stage::InodePtr parent = directory;
      PLAYFS_TRY(directory, stage_.make_directory(parent, name.substr(0, slash), creation));
      tell({{parent, std::string(name.substr(0, slash)), nullptr}});
    } else {
      directory = *found;
    }
    name.remove_prefix(slash + 1);
  }
  auto before = stage_.lookup(directory, name);
  creation.permissions = mode == FileMode::executable ? 0755 : 0644;
  if (before && mode != FileMode::symlink) {
    PLAYFS_TRY(auto attributes, stage_.attributes(*before));
    if (attributes.kind == stage::Kind::file) {
      unsigned runs = mode == FileMode::executable ? 0111 & (attributes.permissions | attributes.permissions >> 2) : 0;
      creation = {(attributes.permissions & ~0111U) | runs | (mode == FileMode::executable ? 0100U : 0U),
                  attributes.uid, attributes.gid};
    }
  }
  if (auto stale = stage_.lookup(directory, kTemporaryName)) PLAYFS_CHECK(stage_.unlink(directory, kTemporaryName));
  if (mode == FileMode::symlink) {
    PLAYFS_TRY([[maybe_unused]] auto link, stage_.make_symlink(directory, kTemporaryName, content, creation));
  } else {
    PLAYFS_TRY(auto file, stage_.make_file(directory, kTemporaryName, creation));
    if (!content.empty()) {
      PLAYFS_TRY(std::size_t written, stage_.write(file, 0, content));
      if (written != content.size()) return fail(ErrorCode::io, "a merged file could not be written whole");
    }
  }
  PLAYFS_CHECK(stage_.rename(directory, kTemporaryName, directory, name, stage::RenameMode::replace));
  tell({{directory, std::string(name), before ? *before : nullptr}});
  return {};
}

Status Integration::remove(const std::string& path) {
  std::string directory_path = path.find('/') == std::string::npos ? "" : path.substr(0, path.rfind('/'));
  std::string name = path.substr(directory_path.empty() ? 0 : directory_path.size() + 1);
  auto directory = find(stage_, directory_path);
  auto inode = directory ? stage_.lookup(directory, name) : fail(ErrorCode::not_found, path);
  if (!inode) return {};
  PLAYFS_CHECK(stage_.unlink(directory, name));
  tell({{directory, name, *inode}});
  // Directories that were there for this file alone go with it, as git does it.
  while (!directory_path.empty()) {
    auto slash = directory_path.rfind('/');
    std::string above = slash == std::string::npos ? "" : directory_path.substr(0, slash);
    std::string last = slash == std::string::npos ? directory_path : directory_path.substr(slash + 1);
    auto parent = find(stage_, above);
    auto child = find(stage_, directory_path);
    if (!parent || !child || !stage_.remove_directory(parent, last)) break;
    tell({{parent, last, child}});
    directory_path = above;
  }
  return {};
}

Status Integration::write(const std::string& path, const Snapshot& near, const MergedFile& file) {
  if (file.text) return put(path, *file.text, file.entry.mode);
  if (auto content = file.entry.inline_content()) return put(path, *content, file.entry.mode);
  PLAYFS_TRY(std::string content, upstream_.content(near.near, path, file.entry));
  return put(path, content, file.entry.mode);
}

/// Of what stands at a path in conflict that gets no markers; nullopt for nothing.
Result<std::optional<ContentHash>> Integration::hash_of_left(const Step& step, const Merge& merge,
                                                             const std::string& path) {
  if (path.starts_with(stage::kStatePath)) return std::optional(ContentHash::of(wire::to_text(merge.state)));
  auto file = merge.files.find(path);
  if (file == merge.files.end()) return std::optional<ContentHash>();
  if (auto content = file->second.entry.inline_content()) return std::optional(ContentHash::of(*content));
  PLAYFS_TRY(std::string content, upstream_.content(step.theirs.near, path, file->second.entry));
  return std::optional(ContentHash::of(content));
}

// The whole.

/// The revisions that the tree stands on: its base, and what was taken in beside it.
std::vector<RevisionId> Integration::lines(const RevisionTreePtr& base) const {
  std::vector<RevisionId> lines = stage_.merge_parents();
  lines.push_back(base->revision.id);
  return lines;
}

Result<std::set<std::string>> Integration::bring_in(const Step& step) {
  PLAYFS_TRY(Merge merge, merging_.merge(step.base, step.ours, step.theirs, step.labels));
  std::map<std::string, stage::Conflicted> conflicted;
  PLAYFS_TRY(auto open, unresolved(stage_));
  for (auto& each : open) conflicted[each.path] = std::move(each);
  std::set<std::string> handled = {stage::kStatePath};
  const Manifest nothing;
  const Manifest& next = step.next ? step.next->tree.manifest() : nothing;
  for (const auto& conflict : merge.conflicts) {
    auto known = conflicted.find(conflict.path);
    // Merged before, by a run that did not come to its end: both sides are in it.
    bool is_marked = known != conflicted.end() && known->second.has_markers;
    if (conflict.kind == ConflictKind::text && !is_marked) {
      merge.files[conflict.path].text = conflict.marked;
      conflicted[conflict.path] = {conflict.path, conflict.reason, true, ContentHash::of(conflict.marked)};
    } else if (conflict.kind != ConflictKind::text) {
      PLAYFS_TRY(auto left, hash_of_left(step, merge, conflict.path));
      conflicted.try_emplace(conflict.path, stage::Conflicted{conflict.path, conflict.reason, false, left});
    }
  }
  std::vector<stage::Conflicted> list;
  for (auto& [path, each] : conflicted) list.push_back(std::move(each));
  PLAYFS_CHECK(stage_.record_conflicted(std::move(list)));

  std::set<std::string> paths;
  for (const Manifest* manifest : {&step.base.manifest, &step.ours.manifest, &step.theirs.manifest, &next})
    for (const auto& [path, entry] : manifest->files) paths.insert(path);
  std::vector<std::string> to_write;
  for (const auto& path : paths) {
    const FileEntry* ours = entry_at(step.ours.manifest, path);
    bool is_staged = !same(ours, entry_at(step.below.manifest, path));
    const FileEntry* there = is_staged ? ours : entry_at(next, path);
    auto merged = merge.files.find(path);
    const FileEntry* wanted = merged == merge.files.end() ? nullptr : &merged->second.entry;
    if (is_staged) handled.insert(path);
    bool is_right = wanted ? !merged->second.text && same(wanted, there) : !there;
    if (is_right) continue;
    handled.insert(path);
    to_write.push_back(path);
  }
  // What goes makes room for what comes.
  for (const auto& path : to_write)
    if (!merge.files.contains(path)) PLAYFS_CHECK(remove(path));
  for (const auto& path : to_write) {
    auto merged = merge.files.find(path);
    if (merged != merge.files.end())
      PLAYFS_CHECK(write(path, step.theirs.near ? step.theirs : step.ours, merged->second));
  }
  const Json none;
  if (merge.state != (step.next ? step.next->revision.state : none) || stage_.staged_state())
    PLAYFS_CHECK(stage_.stage_state(wire::to_text(merge.state)));
  return handled;
}

Result<Integrated> Integration::update(const RevisionTreePtr& head) {
  for (int round = 0;; ++round) {
    RevisionTreePtr base = stage_.base();
    Step step;
    step.theirs = snapshot_of(head);
    step.below = snapshot_of(base);
    step.next = head;
    step.labels = {"work tree", "head " + head->revision.id.text()};
    std::vector<RevisionId> parents;
    if (base) {
      PLAYFS_TRY(step.base, merging_.base_of(lines(base), head->revision.id));
      PLAYFS_TRY(auto holdings, Holdings::compare({base->revision.id, head->revision.id}, merging_.links()));
      if (!holdings.covers(head->revision.id, base->revision.id)) parents.push_back(base->revision.id);
    }
    PLAYFS_TRY(step.ours, local());
    PLAYFS_TRY(auto handled, bring_in(step));
    auto moved = stage_.integrate(head, handled, parents);
    if (!moved && moved.error().code == ErrorCode::busy && round + 1 < kMostRounds) continue;
    if (!moved) return fail(moved.error());
    tell(*moved);
    PLAYFS_TRY(auto left, unresolved(stage_));
    return Integrated{head->revision.id, left.size()};
  }
}

Result<Integrated> Integration::merge(const RevisionTreePtr& revision) {
  RevisionTreePtr base = stage_.base();
  PLAYFS_TRY(auto changes, stage_.changes());
  if (!changes.empty() || stage_.staged_state() || !stage_.conflicted().empty())
    return fail(ErrorCode::busy, "changes are staged", "playfs commit -m MESSAGE, or playfs discard");
  if (!base) return fail(ErrorCode::invalid_argument, "nothing was published yet that it could be merged with");
  PLAYFS_TRY(auto holdings, Holdings::compare({base->revision.id, revision->revision.id}, merging_.links()));
  if (holdings.covers(base->revision.id, revision->revision.id)) return Integrated{base->revision.id, 0};
  Step step;
  PLAYFS_TRY(step.base, merging_.base_of(lines(base), revision->revision.id));
  PLAYFS_TRY(step.ours, local());
  step.theirs = snapshot_of(revision);
  step.below = step.ours;
  step.next = base;
  step.labels = {"work tree", "revision " + revision->revision.id.text()};
  PLAYFS_TRY(auto handled, bring_in(step));
  PLAYFS_TRY(auto moved, stage_.integrate(base, handled, {revision->revision.id}));
  tell(moved);
  PLAYFS_TRY(auto left, unresolved(stage_));
  return Integrated{base->revision.id, left.size()};
}

Status Integration::settle(const std::string& tx, const RevisionTreePtr& base) {
  std::set<std::string> handled;
  for (int round = 0;; ++round) {
    auto settled = stage_.settle(tx, base, handled);
    if (settled) {
      if (settled_) settled_(*settled);  // also where nothing looks different: the base has moved
      return {};
    }
    if (settled.error().code != ErrorCode::busy || round + 1 == kMostRounds) return fail(settled.error());
    // Files were written since they were frozen, and the published revision has more in them than was frozen.
    Step step;
    PLAYFS_TRY(step.base, frozen());
    PLAYFS_TRY(step.ours, local());
    step.theirs = snapshot_of(base);
    step.below = step.base;
    step.next = base;
    step.labels = {"work tree", "revision " + base->revision.id.text()};
    PLAYFS_TRY(handled, bring_in(step));
  }
}

}  // namespace playfs::publish
