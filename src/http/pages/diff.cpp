#include "http/pages/diff.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include <git2.h>

#include "model/content_hash.h"
#include "model/git_library.h"

namespace playfs::http {

namespace {

struct FreePatch {
  void operator()(git_patch* patch) const { git_patch_free(patch); }
};

/// Equal if the contents are certainly the same.
std::string identity_of(const FileEntry& entry) {
  if (auto content = entry.inline_content()) return "i" + *content;
  std::string chunks = entry.encoding == ContentEncoding::base64 ? "b" : "t";
  for (const auto& id : entry.chunks) chunks += id.text() + '\n';
  return chunks;
}

/// Equal if the publishers claim the same content; nullopt without a valid claim.
std::optional<std::string> claim_of(const FileEntry& entry) {
  auto hash = ContentHash::parse(entry.hash_claim);
  if (!hash) return std::nullopt;
  return hash->hex();
}

bool same_content(const FileEntry& a, const FileEntry& b) {
  FileEntry moded = b;
  moded.mode = a.mode;
  return a.same_content_and_mode(moded);
}

/// Records the file that `change` adds as a rename of the removed `from`.
void pair(FileChange& from, FileChange& change, bool by_claim) {
  change.kind = ChangeKind::renamed;
  change.by_claim = by_claim;
  change.old_path = from.path;
  change.before = std::exchange(from.before, nullptr);  // reported by `change` now
}

void find_renames(std::vector<FileChange>& changes) {
  std::unordered_map<std::string, FileChange*> stored, claimed;
  for (auto& change : changes) {
    if (change.kind != ChangeKind::removed) continue;
    stored.emplace(identity_of(*change.before), &change);
    if (auto claim = claim_of(*change.before)) claimed.emplace(*claim, &change);
  }
  for (auto& change : changes) {
    if (change.kind != ChangeKind::added) continue;
    auto found = stored.find(identity_of(*change.after));
    if (found != stored.end() && found->second->before) pair(*found->second, change, false);
  }
  for (auto& change : changes) {
    if (change.kind != ChangeKind::added) continue;
    auto claim = claim_of(*change.after);
    auto found = claim ? claimed.find(*claim) : claimed.end();
    if (found == claimed.end() || !found->second->before) continue;
    // Both contents are in the manifests, and differ.
    if (found->second->before->inline_text && change.after->inline_text) continue;
    pair(*found->second, change, true);
  }
  std::erase_if(changes, [](const FileChange& change) { return !change.before && !change.after; });
}

constexpr std::size_t kMostIndent = 32;

/// Each with its line break, if it has one.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

/// Replaces lines by numbers, equal lines by equal ones. So the compared text is short, and nobody can choose lines
/// whose hashes collide in libgit2. Keeps what libgit2 uses to place a change: indentation, and which lines are empty.
class Numbers {
 public:
  std::string of(const std::vector<std::string_view>& lines) {
    std::string text;
    for (std::string_view line : lines) {
      if (line != "\n") {
        text.append(std::min(line.find_first_not_of(" \t"), kMostIndent), ' ');
        text += std::to_string(numbers_.emplace(line, numbers_.size()).first->second);
      }
      text += '\n';
    }
    return text;
  }

 private:
  std::map<std::string_view, std::size_t> numbers_;
};

std::size_t count_lines(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + !text.ends_with('\n');
}

}  // namespace

std::vector<FileChange> changes_between(const Manifest& before, const Manifest& after) {
  std::vector<FileChange> changes;
  auto old_file = before.files.begin();
  auto new_file = after.files.begin();
  while (old_file != before.files.end() || new_file != after.files.end()) {
    bool only_old =
        new_file == after.files.end() || (old_file != before.files.end() && old_file->first < new_file->first);
    bool only_new = !only_old && (old_file == before.files.end() || new_file->first < old_file->first);
    FileChange change;
    change.path = only_old ? old_file->first : new_file->first;
    change.old_path = change.path;
    if (!only_new) change.before = &(old_file++)->second;
    if (!only_old) change.after = &(new_file++)->second;
    if (only_old) change.kind = ChangeKind::removed;
    else if (only_new) change.kind = ChangeKind::added;
    else if (change.before->same_content_and_mode(*change.after)) continue;
    else if (same_content(*change.before, *change.after)) change.kind = ChangeKind::mode_only;
    changes.push_back(std::move(change));
  }
  find_renames(changes);
  return changes;
}

std::string_view name_of(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::added: return "added";
    case ChangeKind::removed: return "removed";
    case ChangeKind::modified: return "modified";
    case ChangeKind::renamed: return "renamed";
    case ChangeKind::mode_only: return "mode";
  }
  return {};
}

Result<TextDiff> diff_texts(std::string_view before, std::string_view after, const DiffLimits& limits) {
  TextDiff diff;
  diff.compared = count_lines(before) + count_lines(after);
  if (diff.compared > limits.compared) return fail(ErrorCode::file_too_big, "it has too many lines to compare here");
  const auto old_lines = lines_of(before), new_lines = lines_of(after);
  Numbers numbers;
  const std::string old_text = numbers.of(old_lines), new_text = numbers.of(new_lines);

  set_up_git_library();
  git_diff_options options;
  if (git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION) != 0)
    return fail(ErrorCode::internal, "libgit2 is older than the version playfs was built with");
  options.flags = GIT_DIFF_FORCE_TEXT | GIT_DIFF_INDENT_HEURISTIC;
  git_patch* raw = nullptr;
  if (git_patch_from_buffers(&raw, old_text.data(), old_text.size(), nullptr, new_text.data(), new_text.size(), nullptr,
                             &options) != 0)
    return fail(ErrorCode::internal, "the two texts cannot be compared");
  std::unique_ptr<git_patch, FreePatch> patch(raw);

  git_patch_line_stats(nullptr, &diff.added, &diff.removed, patch.get());
  std::size_t shown = 0;
  for (std::size_t h = 0; h < git_patch_num_hunks(patch.get()); ++h) {
    DiffHunk hunk;
    const int count = git_patch_num_lines_in_hunk(patch.get(), h);
    for (int l = 0; l < count; ++l) {
      const git_diff_line* line = nullptr;
      if (git_patch_get_line_in_hunk(&line, patch.get(), h, static_cast<std::size_t>(l)) != 0)
        return fail(ErrorCode::internal, "the two texts cannot be compared");
      if (shown++ == limits.shown) {
        diff.cut = true;
        if (!hunk.lines.empty()) diff.hunks.push_back(std::move(hunk));
        return diff;
      }
      const int old_number = std::max(line->old_lineno, 0), new_number = std::max(line->new_lineno, 0);
      std::string_view text = new_number > 0 ? new_lines[static_cast<std::size_t>(new_number) - 1]
                                             : old_lines[static_cast<std::size_t>(old_number) - 1];
      const bool ends_in_break = text.ends_with('\n');
      if (ends_in_break) text.remove_suffix(1);
      hunk.lines.push_back({line->origin, old_number, new_number, std::string(text), ends_in_break});
    }
    diff.hunks.push_back(std::move(hunk));
  }
  return diff;
}

}  // namespace playfs::http
