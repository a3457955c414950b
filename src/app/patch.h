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
  bool binary = false;
  std::uint64_t size_before = 0;  ///< bytes
  std::uint64_t size_after = 0;
};

/// `before` and `after` are the contents, or a link's target; empty for a side that does not exist.
Result<FileDiff> diff_file(compare::FileChange change, std::string_view before, std::string_view after);

/// "added", "deleted", "renamed" or "modified".
std::string word_of(const compare::FileChange& change);

enum class PatchLine { header, hunk, context, added, removed, note };
/// Calls `take` with each line of the patch, including its sign, without its line break.
void each_line(const FileDiff& diff, const std::function<void(PatchLine, const std::string&)>& take);

/// The output of `git diff --stat`, at most `width` columns wide: a line with a histogram for each file, and a summary.
/// `colour` colours the marks. Names are made safe for a terminal.
std::vector<std::string> stat_lines(const std::vector<FileDiff>& files, std::size_t width, bool colour);

}  // namespace playfs::app
