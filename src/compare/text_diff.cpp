#include "compare/text_diff.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "model/git_library.h"
#include "model/merge.h"

namespace playfs::compare {

namespace {

using Lines = std::vector<std::string_view>;

constexpr std::string_view kBlanks = " \t\n\v\f\r";

/// Each with its line break, if it has one.
Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

/// The columns that libgit2 counts before a line; nullopt for a blank one.
std::optional<std::size_t> indent_of(std::string_view line) {
  constexpr std::size_t most = 200, tab = 8;
  std::size_t columns = 0;
  for (char c : line) {
    if (kBlanks.find(c) == std::string_view::npos) return columns;
    if (c == ' ') ++columns;
    else if (c == '\t') columns += tab - columns % tab;
    if (columns >= most) return most;
  }
  return std::nullopt;
}

/// Replaces lines by numbers, equal lines by equal ones. libgit2 finds the same hunks, but nobody can choose lines
/// whose hashes collide there. Keeps what it uses to place a change: the indentation, and which lines are blank.
class Numbers {
 public:
  std::string of(const Lines& lines) {
    std::string text;
    for (std::string_view line : lines) {
      std::size_t number = numbers_.emplace(line, numbers_.size()).first->second;
      if (auto columns = indent_of(line)) {
        text.append(*columns / 8, '\t').append(*columns % 8, ' ') += std::to_string(number);
      } else {
        for (; number > 0; number /= 2) text += number % 2 == 0 ? '\v' : '\f';
      }
      text += '\n';
    }
    return text;
  }

 private:
  std::map<std::string_view, std::size_t> numbers_;
};

/// Puts together what libgit2 reports about numbers.
struct Assembly {
  const Lines &old_lines, &new_lines;
  const std::size_t most;  ///< lines to show
  TextDiff diff = {};
  std::size_t shown = 0;
  Lines::const_iterator below = old_lines.begin();  ///< what was searched for a function's name
  std::string_view function = {};
};

/// git takes a line that begins with a letter for the beginning of a function, and shows this much of it.
std::string_view function_above(Assembly& assembly, const git_diff_hunk& hunk) {
  constexpr std::size_t most = 80;
  auto begins = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$'; };
  for (const auto end = assembly.old_lines.begin() + std::max(hunk.old_start - 1, 0); assembly.below < end;)
    if (std::string_view line = *assembly.below++; begins(line.front()))
      assembly.function = line.substr(0, std::min(line.find_last_not_of(kBlanks) + 1, most));
  return assembly.function;
}

int on_hunk(const git_diff_delta*, const git_diff_hunk* hunk, void* payload) {
  auto& assembly = *static_cast<Assembly*>(payload);
  if (assembly.shown == assembly.most) return 0;
  auto range = [](int start, int count) {
    return count == 1 ? std::to_string(start) : fmt::format("{},{}", start, count);
  };
  std::string header =
      fmt::format("@@ -{} +{} @@", range(hunk->old_start, hunk->old_lines), range(hunk->new_start, hunk->new_lines));
  if (std::string_view name = function_above(assembly, *hunk); !name.empty()) header.append(" ").append(name);
  assembly.diff.hunks.push_back({std::move(header), {}});
  return 0;
}

int on_line(const git_diff_delta*, const git_diff_hunk*, const git_diff_line* line, void* payload) {
  auto& assembly = *static_cast<Assembly*>(payload);
  TextDiff& diff = assembly.diff;
  if (line->origin == GIT_DIFF_LINE_ADDITION) ++diff.added;
  if (line->origin == GIT_DIFF_LINE_DELETION) ++diff.removed;
  diff.cut = assembly.shown == assembly.most;
  if (diff.cut) return 0;
  ++assembly.shown;
  const int old_number = std::max(line->old_lineno, 0), new_number = std::max(line->new_lineno, 0);
  std::string_view text = new_number > 0 ? assembly.new_lines[static_cast<std::size_t>(new_number) - 1]
                                         : assembly.old_lines[static_cast<std::size_t>(old_number) - 1];
  const bool ends_in_break = text.ends_with('\n');
  if (ends_in_break) text.remove_suffix(1);
  diff.hunks.back().lines.push_back({line->origin, old_number, new_number, std::string(text), ends_in_break});
  return 0;
}

}  // namespace

Status load_library() { return set_up_git_library(); }

Result<TextDiff> diff_texts(std::string_view before, std::string_view after, const DiffLimits& limits) {
  TextDiff diff;
  diff.compared = count_lines(before) + count_lines(after);
  if (diff.compared > limits.compared) return fail(ErrorCode::file_too_big, "it has too many lines to compare here");
  if (before == after) return diff;
  const Lines old_lines = lines_of(before), new_lines = lines_of(after);
  Numbers numbers;
  const std::string old_text = numbers.of(old_lines), new_text = numbers.of(new_lines);

  PLAYFS_CHECK(set_up_git_library());
  git_diff_options options;
  if (git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION) != 0)
    return fail(ErrorCode::internal, "libgit2 is older than the version playfs was built with");
  options.flags = GIT_DIFF_FORCE_TEXT | GIT_DIFF_INDENT_HEURISTIC;
  Assembly assembly{old_lines, new_lines, limits.shown, std::move(diff)};
  if (git_diff_buffers(old_text.data(), old_text.size(), nullptr, new_text.data(), new_text.size(), nullptr, &options,
                       nullptr, nullptr, on_hunk, on_line, &assembly) != 0) {
    const git_error* error = git_error_last();
    return fail(ErrorCode::internal, std::string("compare two texts: ") + (error ? error->message : "libgit2 failed"));
  }
  return std::move(assembly.diff);
}

}  // namespace playfs::compare
