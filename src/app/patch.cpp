#include "app/patch.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "compare/git_blob.h"

namespace playfs::app {

namespace {

/// git apply skips this. patch(1) finds a context diff without line numbers, prints the last line, and ends with 2.
constexpr const char* kEndOfPatch[] = {
    "*** /dev/null", "***************",
    "*** A directory changes places with a link or a file, and patch would write through it or stop: use git apply."};

/// As git sees it.
bool is_binary(std::string_view content) {
  constexpr std::size_t kLookedAt = 8000;
  return content.substr(0, kLookedAt).find('\0') != std::string_view::npos;
}

bool is_renamed(const compare::FileChange& change) { return change.kind == compare::ChangeKind::renamed; }

/// Quotes a name as git does, with C's escapes, if it could end its line early or look quoted itself. Strangers choose
/// names, and a line break in one would start another file in the patch.
std::string quoted(const std::string& name) {
  constexpr std::string_view plain = "abtnvfr";  // from 7 on
  std::string out = "\"";
  for (char c : name) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += {'\\', c};
    else if (byte >= 7 && byte < 7 + plain.size()) out += {'\\', plain[byte - 7u]};
    else if (byte < 0x20 || byte == 0x7f) out += fmt::format("\\{:03o}", byte);
    else out += c;
  }
  out += '"';
  // patch(1) strips trailing blanks.
  return out.size() == name.size() + 2 && !name.ends_with(' ') ? name : out;
}

/// For the "diff --git" line, where patch(1) ends a name at a blank, and which is all it has if no content changes.
std::string quoted_with_blanks(const std::string& name) {
  const std::string out = quoted(name);
  return out == name && name.find(' ') != std::string::npos ? '"' + name + '"' : out;
}

/// In the two lines above the first hunk, a tab ends a name that contains blanks.
std::string ended(const std::string& name) { return quoted(name) + (name.find(' ') == std::string::npos ? "" : "\t"); }

/// The contents by git's names, and the mode if it stays: patch(1) knows by it that a change is one of a link's target,
/// and what is empty; git, which blobs to merge. A binary patch needs whole names.
Result<std::string> index_line(const compare::FileChange& change, std::string_view before, std::string_view after,
                               bool whole) {
  constexpr std::size_t kWhole = 40, kAbbreviated = 7;
  const std::size_t length = whole ? kWhole : kAbbreviated;
  auto name = [&](const FileEntry* entry, std::string_view content) -> Result<std::string> {
    if (!entry) return std::string(length, '0');
    PLAYFS_TRY(const std::string id, compare::blob_id(content));
    return id.substr(0, length);
  };
  PLAYFS_TRY(const std::string old_name, name(change.before, before));
  PLAYFS_TRY(const std::string new_name, name(change.after, after));
  const bool keeps_mode = change.before && change.after && change.before->mode == change.after->mode;
  return "index " + old_name + ".." + new_name + (keeps_mode ? " " + std::string(git_mode(change.after->mode)) : "");
}

Status write_header(FileDiff& diff, std::string_view before_text, std::string_view after_text) {
  const auto& [kind, path, old_path, before, after, similarity, by_claim] = diff.change;
  std::vector<std::string>& header = diff.header;
  const std::string a = "a/" + old_path, b = "b/" + path;
  header = {"diff --git " + quoted_with_blanks(a) + " " + quoted_with_blanks(b)};
  auto add_mode = [&](const char* what, const FileEntry& entry) { header.push_back(what + git_mode(entry.mode)); };
  if (!before) add_mode("new file mode ", *after);
  else if (!after) add_mode("deleted file mode ", *before);
  else if (before->mode != after->mode) add_mode("old mode ", *before), add_mode("new mode ", *after);
  if (is_renamed(diff.change))
    header.insert(header.end(), {"similarity index " + std::to_string(similarity) + "%",
                                 "rename from " + quoted(old_path), "rename to " + quoted(path)});
  const bool is_encoded = !diff.encoded.empty();
  if (is_encoded || !before || !after || before_text != after_text) {
    PLAYFS_TRY(std::string index, index_line(diff.change, before_text, after_text, is_encoded));
    header.push_back(std::move(index));
  }
  if (is_encoded) return {};
  const std::string old_name = before ? a : "/dev/null", new_name = after ? b : "/dev/null";
  if (diff.binary) header.push_back("Binary files " + quoted(old_name) + " and " + quoted(new_name) + " differ");
  else if (!diff.text.hunks.empty()) header.insert(header.end(), {"--- " + ended(old_name), "+++ " + ended(new_name)});
  return {};
}

}  // namespace

Result<FileDiff> diff_file(compare::FileChange change, std::string_view before, std::string_view after,
                           AppliedBy applied_by) {
  FileDiff diff{std::move(change), {}, {}, {}, false, before.size(), after.size()};
  diff.binary = (is_binary(before) || is_binary(after)) && before != after;
  if (!diff.binary) {
    PLAYFS_TRY(diff.text, compare::diff_texts(before, after));
  }
  if (applied_by == AppliedBy::git_only) {
    PLAYFS_TRY(diff.encoded, compare::binary_patch(before, after));
  }
  PLAYFS_CHECK(write_header(diff, before, after));
  return diff;
}

std::string word_of(const compare::FileChange& change) {
  return !change.before ? "added" : !change.after ? "deleted" : is_renamed(change) ? "renamed" : "modified";
}

void each_line(const FileDiff& diff, const std::function<void(PatchLine, const std::string&)>& take) {
  auto take_hunks = [&](const std::string& mark) {
    for (const compare::DiffHunk& hunk : diff.text.hunks) {
      take(PatchLine::hunk, mark + hunk.header);
      for (const compare::DiffLine& line : hunk.lines) {
        const PatchLine kind = line.sign == '+'   ? PatchLine::added
                               : line.sign == '-' ? PatchLine::removed
                                                  : PatchLine::context;
        take(kind, mark + line.sign + line.text);
        if (!line.ends_in_break) take(PatchLine::note, mark + "\\ No newline at end of file");
      }
    }
  };
  if (!diff.encoded.empty()) {
    for (const char* line : kEndOfPatch) take(PatchLine::note, line);
    take_hunks("# ");  // for people: every tool skips comments
  }
  for (const std::string& line : diff.header) take(PatchLine::header, line);
  for (const std::string& line : diff.encoded) take(PatchLine::note, line);
  if (diff.encoded.empty()) take_hunks("");
}

std::vector<std::string> stat_lines(const std::vector<FileDiff>& files, std::size_t width, bool colour) {
  constexpr std::size_t kLeastGraph = 10;
  auto name_of = [](const FileDiff& file) {
    const compare::FileChange& change = file.change;
    return escape_for_terminal(is_renamed(change) ? change.old_path + " => " + change.path : change.path);
  };
  auto marks = [&](char mark, std::uint64_t count, const char* code) {
    std::string text(static_cast<std::size_t>(count), mark);
    return colour && count > 0 ? code + text + "\x1b[m" : text;
  };
  std::uint64_t added = 0, removed = 0, most = 0;
  std::size_t longest = 0;
  for (const FileDiff& file : files) {
    added += file.text.added;
    removed += file.text.removed;
    most = std::max(most, file.text.added + file.text.removed);
    longest = std::max(longest, name_of(file).size());
  }
  const std::size_t digits = std::to_string(most).size();
  const std::size_t names = std::min(longest, std::max(width, 2 * kLeastGraph + digits) - kLeastGraph - digits - 5);
  const std::size_t room = std::max(kLeastGraph, width - std::min(width, names + digits + 5));
  std::vector<std::string> lines;
  for (const FileDiff& file : files) {
    std::string name = name_of(file);
    // The end of a path says more than its beginning.
    if (name.size() > names) name = "..." + name.substr(name.size() - names + 3);
    name.resize(names, ' ');
    std::string line = " " + name + " | ";
    if (file.binary) {
      lines.push_back(line + "Bin " + std::to_string(file.size_before) + " -> " + std::to_string(file.size_after) +
                      " bytes");
      continue;
    }
    const std::uint64_t count = file.text.added + file.text.removed;
    const std::string number = std::to_string(count);
    line += std::string(digits - number.size(), ' ') + number;
    // Every change gets at least one mark.
    auto scaled = [&](std::uint64_t part) {
      return most <= room || part == 0 ? part : std::max<std::uint64_t>(1, part * room / most);
    };
    if (count > 0)
      line += " " + marks('+', scaled(file.text.added), "\x1b[32m") + marks('-', scaled(file.text.removed), "\x1b[31m");
    lines.push_back(line);
  }
  auto counted = [](std::uint64_t count, const char* one, const char* many) {
    return std::to_string(count) + " " + (count == 1 ? one : many);
  };
  std::string all = " " + counted(files.size(), "file changed", "files changed");
  if (added > 0) all += ", " + counted(added, "insertion(+)", "insertions(+)");
  if (removed > 0) all += ", " + counted(removed, "deletion(-)", "deletions(-)");
  lines.push_back(all);
  return lines;
}

}  // namespace playfs::app
