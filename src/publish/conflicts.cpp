#include "publish/conflicts.h"

#include <algorithm>

#include "model/merge.h"
#include "model/path.h"
#include "publish/staged_bytes.h"
#include "stage/ignore.h"
#include "wire/json.h"

namespace playfs::publish {

namespace {

Result<bool> is_unresolved(const stage::Conflicted& conflicted, const Bytes& now) {
  PLAYFS_TRY(auto examined, examine(now));
  if (conflicted.left == examined.hash) return true;
  if (!conflicted.has_markers) return false;
  MarkerSearch search;
  PLAYFS_CHECK(each_piece(now, [&](std::uint64_t, std::string_view piece) -> Status {
    search.take(piece);
    return {};
  }));
  return search.found();
}

/// Whether the inode still has to be edited. Only files and links can be.
Result<bool> is_unresolved(stage::Stage& stage, const stage::Conflicted& conflicted, const stage::InodePtr& inode) {
  PLAYFS_TRY(auto attributes, stage.attributes(inode));
  if (attributes.kind != stage::Kind::file && attributes.kind != stage::Kind::symlink) return false;
  if (auto lower = stage.lower_content(inode)) {
    // The file was moved here, or only its mode changed. If its hash is unknown, nobody has edited it.
    auto hash = known_hash(*lower->entry);
    return conflicted.left && (!hash || hash == conflicted.left);
  }
  PLAYFS_TRY(Bytes now, staged_bytes(stage, inode));
  return is_unresolved(conflicted, now);
}

/// Whether markers are about to be published under a name other than the one they were left at. If `moved` is known,
/// only that inode is checked. Otherwise any written file may have them: a copy, or what an editor put in place of a
/// moved file.
Result<bool> has_markers_elsewhere(stage::Stage& stage, const stage::Conflicted& conflicted,
                                   const stage::InodePtr& moved) {
  PLAYFS_TRY(auto changes, stage.changes());
  for (const auto& change : changes) {
    if (change.kind == stage::ChangeKind::deleted || change.path == conflicted.path) continue;
    auto inode = stage.find(change.path);
    if (!inode || (moved && inode != moved)) continue;
    PLAYFS_TRY(auto attributes, stage.attributes(inode));
    if (attributes.kind != stage::Kind::file || attributes.is_below || attributes.size > kMostMergedText) continue;
    auto is_marked = is_unresolved(stage, conflicted, inode);
    // Lost content cannot be published; the commit reports that itself.
    if (!is_marked && is_marked.error().code == ErrorCode::corrupt) continue;
    if (!is_marked || *is_marked) return is_marked;
  }
  return false;
}

/// As the tree shows it, whether or not it is staged.
std::string state_of(const stage::Stage& stage) {
  if (auto staged = stage.staged_state()) return *std::move(staged);
  const RevisionTreePtr base = stage.base();
  return wire::to_text(base ? base->revision.state : Json());
}

/// "n.m" for a conflict at "(state) n.m", "" for a conflict of the whole state.
std::string_view key_of(std::string_view path) {
  path.remove_prefix(std::min(path.size(), std::string_view(stage::kStatePath).size() + 1));
  return path;
}

/// Names may contain dots, so several values may match.
void add_values(const Json& value, std::string_view key, std::string& found) {
  const auto* object = value.object();
  if (!object) return;
  for (const auto& member : *object) {
    if (member.name == key) found += wire::to_text(member.value) + '\n';
    else if (key.starts_with(member.name) && key[member.name.size()] == '.')
      add_values(member.value, key.substr(member.name.size() + 1), found);
  }
}

Result<bool> is_state_unresolved(const stage::Stage& stage, const stage::Conflicted& conflicted) {
  const std::string text = state_of(stage);
  // Older versions recorded the hash of the whole state.
  if (conflicted.left == ContentHash::of(text)) return true;
  PLAYFS_TRY(Json state, wire::parse_json(text));
  return conflicted.left == hash_of_state(state, conflicted.path);
}

Result<bool> is_unresolved(stage::Stage& stage, const stage::Conflicted& conflicted) {
  if (!conflicted.beside.empty() && stage.find(conflicted.beside)) return true;
  if (conflicted.is_kept_here) {
    PLAYFS_TRY(auto changes, stage.changes());
    return std::any_of(changes.begin(), changes.end(), [&](const stage::Change& change) {
      return change.path == conflicted.path || change.path.starts_with(conflicted.path + '/');
    });
  }
  if (!conflicted.beside.empty()) return false;
  if (conflicted.path.starts_with(stage::kStatePath)) return is_state_unresolved(stage, conflicted);
  const auto inode = stage.find(conflicted.path);
  // Moving a file, or its folder, resolves nothing.
  const auto moved = conflicted.ino != 0 ? stage.find_recorded(conflicted.ino) : nullptr;
  if (inode || moved) {
    PLAYFS_TRY(bool is_open, is_unresolved(stage, conflicted, inode ? inode : moved));
    if (is_open || !conflicted.has_markers || !inode || !moved || inode == moved) return is_open;
  }
  if (!conflicted.has_markers) return !conflicted.left;
  return has_markers_elsewhere(stage, conflicted, moved);
}

}  // namespace

std::optional<ContentHash> hash_of_state(const Json& state, std::string_view path) {
  const std::string_view key = key_of(path);
  std::string found;
  if (key.empty()) found = wire::to_text(state);
  else add_values(state, key, found);
  if (found.empty()) return std::nullopt;
  return ContentHash::of(found);
}

RuleFiles rules_of(const Manifest& manifest) {
  RuleFiles rules;
  for (const auto& [path, entry] : manifest.files)
    if (stage::is_rule_file(path)) rules.emplace(path, content_key(entry));
  return rules;
}

std::string content_key(const FileEntry& entry) {
  if (auto hash = known_hash(entry)) return hash->hex();
  std::string key;
  for (const auto& chunk : entry.chunks) key += chunk.text() + '\n';
  return key;
}

std::optional<ContentHash> known_hash(const FileEntry& entry) {
  if (auto content = entry.inline_content()) return ContentHash::of(*content);
  return ContentHash::parse(entry.hash_claim);
}

Result<std::vector<stage::Conflicted>> unresolved(stage::Stage& stage) {
  std::vector<stage::Conflicted> left;
  for (const auto& each : stage.conflicted()) {
    auto open = is_unresolved(stage, each);
    // Somebody is writing it right now. Count it as unresolved; the next check decides.
    if (!open && open.error().code != ErrorCode::busy) return fail(open.error());
    if (!open || *open) left.push_back(each);
  }
  return left;
}

Status sync_resolved(stage::Stage& stage, const std::vector<stage::Conflicted>& left) {
  for (const auto& each : stage.conflicted()) {
    if (std::find(left.begin(), left.end(), each) != left.end()) continue;
    auto inode = stage.find(each.path);
    if (!inode && each.ino != 0) inode = stage.find_recorded(each.ino);
    if (inode) PLAYFS_CHECK(stage.sync(inode));
  }
  return {};
}

std::string how_to_resolve(const stage::Conflicted& conflicted) {
  if (conflicted.path.starts_with(stage::kStatePath)) {
    const std::string key(key_of(conflicted.path));
    return key.empty() ? "edit state.json" : "change " + key + " in state.json";
  }
  if (conflicted.is_kept_here && conflicted.beside.empty()) return "add an ignore rule for it, or move it elsewhere";
  if (conflicted.is_kept_here)
    return "move it elsewhere, then playfs discard it and delete " + conflicted.beside + " to get theirs";
  if (conflicted.has_markers) return "remove its conflict markers (also if it was moved), or discard it";
  return conflicted.beside.empty() ? "edit or discard it" : "move or delete " + conflicted.beside;
}

std::string name_beside(std::string_view path, std::string_view ending, int number) {
  std::string added(ending);
  if (number > 1) added += '-' + std::to_string(number);
  const std::size_t begin = path.rfind('/') + 1;
  std::size_t end = std::min({path.size(), begin + kMaxComponentLength - added.size(), kMaxPathLength - added.size()});
  // Do not cut a character in half.
  while (end < path.size() && end > begin && (static_cast<unsigned char>(path[end]) & 0xC0) == 0x80) --end;
  return std::string(path.substr(0, end)) + added;
}

}  // namespace playfs::publish
