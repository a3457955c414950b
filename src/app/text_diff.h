// Unified diffs of two contents, as git writes them. Pure functions; libgit2 does the comparing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace playfs::app {

/// One side of a comparison.
struct DiffSide {
  std::string mode;     ///< "100644", "100755", "120000"
  std::string content;  ///< for a symbolic link, its target
};

struct DiffLine {
  enum class Kind { hunk, context, added, removed, note } kind = Kind::context;
  std::string text;  ///< including its sign, without a line break
};

/// A file's previous path, and how much of it is unchanged, in percent.
struct Renamed {
  std::string from;
  unsigned similarity = 100;
};

struct FileDiff {
  std::string path;
  std::string_view kind;  ///< "added", "deleted", "modified", "renamed"
  std::optional<Renamed> renamed;
  std::vector<std::string> header;  ///< from "diff --git …" up to the first hunk
  std::vector<DiffLine> lines;
  bool binary = false;
  std::uint64_t added = 0;
  std::uint64_t removed = 0;
  std::uint64_t size_before = 0;  ///< bytes
  std::uint64_t size_after = 0;
};

/// nullopt for a side that does not exist. REQUIRES: at least one exists, and both if the file was renamed.
Result<FileDiff> diff_file(const std::string& path, const std::optional<DiffSide>& before,
                           const std::optional<DiffSide>& after, std::optional<Renamed> renamed = {});

/// The output of `git diff --stat`, at most `width` columns wide: a line with a histogram for each file, and a summary.
/// `colour` colours the marks. Names are made safe for a terminal.
std::vector<std::string> stat_lines(const std::vector<FileDiff>& files, std::size_t width, bool colour);

}  // namespace playfs::app
