// Patches as git writes them, and histograms of them. Pure functions; a FileDiff refers to the entries of its change.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compare/text_diff.h"
#include "compare/trees.h"

namespace playfs::app {

struct FileDiff {
  compare::FileChange change;
  std::vector<std::string> header;  ///< from "diff --git …" up to the first hunk
  compare::TextDiff text;
  std::vector<std::string> encoded;  ///< a "GIT binary patch" for git only; the hunks are then shown as comments
  bool binary = false;
  std::uint64_t size_before = 0;  ///< bytes
  std::uint64_t size_after = 0;
};

/// Who may apply the patch of a file.
enum class AppliedBy { any_tool, git_only };

/// `before` and `after` are the contents, or a link's target; empty for a side that does not exist.
///
/// git_only: patch(1) ends with an error before it touches this file, or any below it in a patch. Other tools, and one
/// that is told to skip the error, find no text to apply.
Result<FileDiff> diff_file(compare::FileChange change, std::string_view before, std::string_view after,
                           AppliedBy applied_by);

/// "added", "deleted", "renamed" or "modified".
std::string word_of(const compare::FileChange& change);

enum class PatchLine { header, hunk, context, added, removed, note };
/// Calls `take` with each line of the patch, including its sign, without its line break.
void each_line(const FileDiff& diff, const std::function<void(PatchLine, const std::string&)>& take);

/// The output of `git diff --stat`, at most `width` columns wide: a line with a histogram for each file, and a summary.
/// `colour` colours the marks. Names are made safe for a terminal.
std::vector<std::string> stat_lines(const std::vector<FileDiff>& files, std::size_t width, bool colour);

}  // namespace playfs::app
