// Compares two texts line by line, with the hunks that `git diff` shows: libgit2 finds them. Callable on several
// threads at once; the result has copies of the lines that it shows.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace playfs::compare {

struct DiffLine {
  char sign = ' ';     ///< ' ' in both, '+' only in the newer, '-' only in the older
  int old_number = 0;  ///< from 1; 0: not in that one
  int new_number = 0;
  std::string text;  ///< without its line break
  bool ends_in_break = true;
};
struct DiffHunk {
  std::string header;  ///< "@@ -1,7 +1,6 @@", and a line above it that may name the function, as in git
  std::vector<DiffLine> lines;
};
/// The bounds on comparing two texts.
struct DiffLimits {
  std::size_t compared = std::numeric_limits<std::size_t>::max();  ///< lines of both together
  std::size_t shown = std::numeric_limits<std::size_t>::max();     ///< lines of the difference
};
struct TextDiff {
  std::vector<DiffHunk> hunks;  ///< with three lines of context
  std::size_t added = 0;
  std::size_t removed = 0;
  bool cut = false;          ///< lines past the limit were left out
  std::size_t compared = 0;  ///< lines of both
};

/// Loads the library that compares texts and merges them, which the first call would otherwise do: for what runs on.
Status load_library();

/// The cost grows with the number of lines, not with their contents.
/// Errors: file_too_big for more lines than may be compared. REQUIRES: less than 512 MiB each.
Result<TextDiff> diff_texts(std::string_view before, std::string_view after, const DiffLimits& limits = {});

}  // namespace playfs::compare
