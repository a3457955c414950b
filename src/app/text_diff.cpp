#include "app/text_diff.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <git2.h>

#include "base/text.h"
#include "model/git_library.h"

namespace playfs::app {

namespace {

constexpr std::string_view kEmptyBlob = "e69de29";  ///< git's abbreviated id of an empty blob

DiffLine line_of(const git_diff_line& line) {
  std::string_view content(line.content, line.content_len);
  if (content.ends_with('\n')) content.remove_suffix(1);
  switch (line.origin) {
    case GIT_DIFF_LINE_ADDITION: return {DiffLine::Kind::added, "+" + std::string(content)};
    case GIT_DIFF_LINE_DELETION: return {DiffLine::Kind::removed, "-" + std::string(content)};
    case GIT_DIFF_LINE_CONTEXT: return {DiffLine::Kind::context, " " + std::string(content)};
    default: return {DiffLine::Kind::note, "\\ No newline at end of file"};
  }
}

int on_hunk(const git_diff_delta*, const git_diff_hunk* hunk, void* payload) {
  std::string_view header(hunk->header, hunk->header_len);
  while (header.ends_with('\n')) header.remove_suffix(1);
  static_cast<FileDiff*>(payload)->lines.push_back({DiffLine::Kind::hunk, std::string(header)});
  return 0;
}

int on_line(const git_diff_delta*, const git_diff_hunk*, const git_diff_line* line, void* payload) {
  auto& diff = *static_cast<FileDiff*>(payload);
  diff.lines.push_back(line_of(*line));
  if (diff.lines.back().kind == DiffLine::Kind::added) ++diff.added;
  if (diff.lines.back().kind == DiffLine::Kind::removed) ++diff.removed;
  return 0;
}

int on_binary(const git_diff_delta*, const git_diff_binary*, void* payload) {
  static_cast<FileDiff*>(payload)->binary = true;
  return 0;
}

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

void write_header(FileDiff& diff, const std::optional<DiffSide>& before, const std::optional<DiffSide>& after) {
  const std::string a = "a/" + (diff.renamed ? diff.renamed->from : diff.path), b = "b/" + diff.path;
  diff.header.push_back("diff --git " + quoted_with_blanks(a) + " " + quoted_with_blanks(b));
  if (!before) diff.header.push_back("new file mode " + after->mode);
  else if (!after) diff.header.push_back("deleted file mode " + before->mode);
  else if (before->mode != after->mode)
    diff.header.insert(diff.header.end(), {"old mode " + before->mode, "new mode " + after->mode});
  if (diff.renamed)
    diff.header.insert(diff.header.end(),
                       {"similarity index " + std::to_string(diff.renamed->similarity) + "%",
                        "rename from " + quoted(diff.renamed->from), "rename to " + quoted(diff.path)});
  const std::string old_name = before ? a : "/dev/null", new_name = after ? b : "/dev/null";
  // Without it, patch(1) does not delete an empty file.
  if (before && !after && before->content.empty())
    diff.header.push_back("index " + std::string(kEmptyBlob) + "..0000000");
  if (diff.binary) diff.header.push_back("Binary files " + quoted(old_name) + " and " + quoted(new_name) + " differ");
  else if (!diff.lines.empty())
    diff.header.insert(diff.header.end(), {"--- " + ended(old_name), "+++ " + ended(new_name)});
}

}  // namespace

Result<FileDiff> diff_file(const std::string& path, const std::optional<DiffSide>& before,
                           const std::optional<DiffSide>& after, std::optional<Renamed> renamed) {
  set_up_git_library();
  FileDiff diff;
  diff.path = path;
  diff.renamed = std::move(renamed);
  git_diff_options options;
  if (git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION) != 0)
    return fail(ErrorCode::internal, "libgit2 is older than the version playfs was built with");
  options.flags = GIT_DIFF_INDENT_HEURISTIC;
  auto data = [](const std::optional<DiffSide>& side) { return side ? side->content.data() : nullptr; };
  auto size = [](const std::optional<DiffSide>& side) { return side ? side->content.size() : 0; };
  if (git_diff_buffers(data(before), size(before), path.c_str(), data(after), size(after), path.c_str(), &options,
                       nullptr, on_binary, on_hunk, on_line, &diff) != 0) {
    const git_error* error = git_error_last();
    return fail(ErrorCode::internal, "compare " + path + ": " + (error != nullptr ? error->message : "libgit2 failed"));
  }
  diff.size_before = size(before);
  diff.size_after = size(after);
  diff.kind = !before ? "added" : !after ? "deleted" : diff.renamed ? "renamed" : "modified";
  write_header(diff, before, after);
  return diff;
}

std::vector<std::string> stat_lines(const std::vector<FileDiff>& files, std::size_t width, bool colour) {
  constexpr std::size_t kLeastGraph = 10;
  auto name_of = [](const FileDiff& file) {
    return escape_for_terminal(file.renamed ? file.renamed->from + " => " + file.path : file.path);
  };
  auto marks = [&](char mark, std::uint64_t count, const char* code) {
    std::string text(static_cast<std::size_t>(count), mark);
    return colour && count > 0 ? code + text + "\x1b[m" : text;
  };
  std::uint64_t added = 0, removed = 0, most = 0;
  std::size_t longest = 0;
  for (const FileDiff& file : files) {
    added += file.added;
    removed += file.removed;
    most = std::max(most, file.added + file.removed);
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
    const std::uint64_t count = file.added + file.removed;
    const std::string number = std::to_string(count);
    line += std::string(digits - number.size(), ' ') + number;
    // Every change gets at least one mark.
    auto scaled = [&](std::uint64_t part) {
      return most <= room || part == 0 ? part : std::max<std::uint64_t>(1, part * room / most);
    };
    if (count > 0)
      line += " " + marks('+', scaled(file.added), "\x1b[32m") + marks('-', scaled(file.removed), "\x1b[31m");
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
