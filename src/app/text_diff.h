// Unified diffs of two contents, as git writes them. Pure functions; libgit2 does the comparing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace playfs::app {

/// One side of a comparison.
struct DiffSide {
  std::string mode;     ///< "100644", "100755", "120000"
  std::string content;  ///< of a symbolic link its target
};

struct DiffLine {
  enum class Kind { hunk, context, added, removed, note } kind = Kind::context;
  std::string text;  ///< with its sign in front, without a line break
};

struct FileDiff {
  std::string path;
  std::vector<std::string> header;  ///< "diff --git …" and what follows up to the first hunk
  std::vector<DiffLine> lines;
  bool binary = false;
  std::uint64_t added = 0;
  std::uint64_t removed = 0;
};

/// nullopt for a side that does not exist. REQUIRES: at least one does.
Result<FileDiff> diff_file(const std::string& path, const std::optional<DiffSide>& before,
                           const std::optional<DiffSide>& after);

}  // namespace playfs::app
