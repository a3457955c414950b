#include "publish/conflicts.h"

#include <algorithm>

#include "model/merge.h"
#include "model/path.h"
#include "publish/staged_bytes.h"
#include "stage/ignore.h"
#include "wire/json.h"

namespace playfs::publish {

namespace {

/// Finds a line that Integration's merges wrote, in text that arrives in pieces. One of the two is enough: somebody
/// took the other out by hand. Editors may have indented it, or saved the text with other line ends or in UTF-16.
class LeftoverSearch {
 public:
  void take(std::string_view piece) {
    for (const char c : piece) {
      if (c == '\0') continue;  // of UTF-16
      if (c == '\n' || c == '\r') end_line();
      else if (line_.size() < kMost && !(line_.empty() && is_blank(c))) line_ += c;
    }
  }
  bool found() {
    end_line();
    return found_;
  }

 private:
  static constexpr std::size_t kMost = 32;
  /// Or a byte of a byte order mark.
  static bool is_blank(char c) { return std::string_view(" \t\xef\xbb\xbf\xff\xfe").find(c) != std::string_view::npos; }
  void end_line() {
    constexpr std::size_t marker = 8;  // with its space
    const std::string_view label = std::string_view(line_).substr(std::min(marker, line_.size()));
    if (line_.starts_with("<<<<<<< ")) found_ = found_ || label.starts_with(kOurLabel);
    if (line_.starts_with(">>>>>>> "))
      found_ = found_ || label.starts_with(kHeadLabel) || label.starts_with(kRevisionLabel);
    line_.clear();
  }

  std::string line_;  ///< its beginning
  bool found_ = false;
};

template <typename Search>
Result<bool> finds(Search search, const Bytes& bytes) {
  PLAYFS_CHECK(each_piece(bytes, [&](std::uint64_t, std::string_view piece) -> Status {
    search.take(piece);
    return {};
  }));
  return search.found();
}

Result<bool> is_unresolved(const stage::Conflicted& conflicted, const Bytes& now) {
  PLAYFS_TRY(auto examined, examine(now));
  if (conflicted.left == examined.hash) return true;
  if (!conflicted.has_markers) return false;
  PLAYFS_TRY(bool has_markers, finds(MarkerSearch(), now));
  if (has_markers) return true;
  return finds(LeftoverSearch(), now);
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

/// As the tree shows it, whether or not it is staged.
std::string state_of(const stage::Stage& stage) {
  if (auto staged = stage.staged_state()) return *std::move(staged);
  const RevisionTreePtr base = stage.base();
  return wire::to_text(base ? base->revision.state : Json());
}

/// "n.m" for a conflict at "/(state) n.m", "" for a conflict of the whole state.
std::string_view state_key_of(std::string_view path) {
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

Result<bool> is_unresolved(stage::Stage& stage, const stage::Conflicted& conflicted, const PathSet& staged) {
  if (!conflicted.beside.empty() && stage.find(conflicted.beside)) return true;
  if (conflicted.is_kept_here) return has_at_or_below(staged, conflicted.path);
  if (!conflicted.beside.empty()) return false;
  if (is_of_state(conflicted)) return is_state_unresolved(stage, conflicted);
  auto inode = stage.find(conflicted.path);
  // Moving the file resolves nothing.
  if (!inode && conflicted.ino != 0) inode = stage.find_recorded(conflicted.ino);
  if (inode) return is_unresolved(stage, conflicted, inode);
  return !conflicted.has_markers && !conflicted.left;
}

/// Whether a file that is about to be published has a marker that an update or a merge wrote.
Result<bool> has_leftovers(stage::Stage& stage, const stage::InodePtr& inode) {
  PLAYFS_TRY(auto attributes, stage.attributes(inode));
  if (attributes.kind != stage::Kind::file || attributes.is_below || attributes.size > kMostMergedText) return false;
  PLAYFS_TRY(Bytes now, staged_bytes(stage, inode));
  return finds(LeftoverSearch(), now);
}

/// Markers may have been copied, or an editor may have put another file in place of one that was moved. So once all
/// recorded conflicts with markers are resolved, every staged file that has some is in conflict.
Status add_marked(stage::Stage& stage, std::vector<stage::Conflicted>& left) {
  PLAYFS_TRY(auto changes, stage.changes());
  for (const auto& change : changes) {
    auto inode = change.kind == stage::ChangeKind::deleted ? nullptr : stage.find(change.path);
    if (!inode) continue;
    auto is_marked = has_leftovers(stage, inode);
    // Lost content cannot be published; the commit reports that itself.
    if (!is_marked && is_marked.error().code == ErrorCode::corrupt) continue;
    if (!is_marked && is_marked.error().code != ErrorCode::busy) return fail(is_marked.error());
    if (is_marked && !*is_marked) continue;
    PLAYFS_TRY(auto attributes, stage.attributes(inode));
    left.push_back({.path = change.path,
                    .reason = "it has conflict markers",
                    .has_markers = true,
                    .left = std::nullopt,
                    .ino = attributes.ino});
  }
  return {};
}

}  // namespace

bool is_of_file(const stage::Conflicted& conflicted) { return !conflicted.path.starts_with('/'); }

bool is_of_state(const stage::Conflicted& conflicted) { return conflicted.path.starts_with(stage::kStatePath); }

std::string path_of(const Conflict& conflict) {
  // What is not a file is in conflict as published. The path of a refused entry may begin like this too: it names no
  // file either.
  const bool names_field = conflict.path.starts_with("(state) ") || conflict.path.starts_with("(manifest) ");
  return (conflict.kind == ConflictKind::published && names_field ? "/" : "") + conflict.path;
}

std::string shown_path(const stage::Conflicted& conflicted) {
  return conflicted.path.substr(is_of_file(conflicted) ? 0 : 1);
}

std::optional<ContentHash> hash_of_state(const Json& state, std::string_view path) {
  const std::string_view key = state_key_of(path);
  std::string found;
  if (key.empty()) found = wire::to_text(state);
  else add_values(state, key, found);
  if (found.empty()) return std::nullopt;
  return ContentHash::of(found);
}

Result<std::vector<stage::Conflicted>> unresolved(stage::Stage& stage) {
  std::vector<stage::Conflicted> left;
  const auto recorded = stage.conflicted();
  PathSet staged, present;  // `present` omits deletions: a file moved away is not in conflict
  if (std::any_of(recorded.begin(), recorded.end(), [](const auto& each) { return each.is_kept_here; })) {
    PLAYFS_TRY(auto changes, stage.changes());
    for (const auto& change : changes) {
      staged.insert(change.path);
      if (change.kind != stage::ChangeKind::deleted) present.insert(change.path);
    }
  }
  for (const auto& each : recorded) {
    auto open = is_unresolved(stage, each, each.beside.empty() ? present : staged);
    // Somebody is writing it right now. Count it as unresolved; the next check decides.
    if (!open && open.error().code != ErrorCode::busy) return fail(open.error());
    if (!open || *open) left.push_back(each);
  }
  auto has_markers = [](const stage::Conflicted& each) { return each.has_markers; };
  if (std::any_of(recorded.begin(), recorded.end(), has_markers) && std::none_of(left.begin(), left.end(), has_markers))
    PLAYFS_CHECK(add_marked(stage, left));
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
  if (is_of_state(conflicted)) {
    const std::string key(state_key_of(conflicted.path));
    return key.empty() ? "edit state.json" : "change " + key + " in state.json";
  }
  if (conflicted.is_kept_here && conflicted.beside.empty())
    return "add an ignore rule for it, or move it out of the work tree";
  if (conflicted.is_kept_here)
    return "move it out of the work tree, then playfs discard it and delete " + conflicted.beside + " to get theirs";
  if (conflicted.has_markers) return "remove its conflict markers, or discard it";
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
