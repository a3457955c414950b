// The differences between two manifests, and between two texts line by line. Pure except for libgit2's global set-up;
// callable on several threads at once.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/manifest.h"

namespace playfs::http {

enum class ChangeKind { added, removed, modified, renamed, mode_only };

/// One file that differs. The entries are owned by the manifests.
struct FileChange {
  ChangeKind kind = ChangeKind::modified;
  std::string path;       ///< in the newer manifest; in the older one if it was removed
  std::string old_path;   ///< of a renamed file; otherwise same as `path`
  bool by_claim = false;  ///< a rename based only on the hash that the publisher wrote
  const FileEntry* before = nullptr;
  const FileEntry* after = nullptr;
};

/// In the order of paths. Only the manifests are compared, so the same bytes under a different claimed hash count as
/// modified. A removed file and an added one with the same content are a rename: certain if they are stored
/// identically, else based on equal claimed hashes.
std::vector<FileChange> changes_between(const Manifest& before, const Manifest& after);

std::string_view name_of(ChangeKind kind);

struct DiffLine {
  char kind = ' ';     ///< ' ' in both, '+' only in the newer, '-' only in the older
  int old_number = 0;  ///< from 1; 0: not in that one
  int new_number = 0;
  std::string text;  ///< without its line break
  bool ends_in_break = true;
};
struct DiffHunk {
  std::vector<DiffLine> lines;
};
/// The bounds on comparing two texts.
struct DiffLimits {
  std::size_t compared = 40'000;  ///< lines of both together
  std::size_t shown = 2000;       ///< lines of the difference
};
struct TextDiff {
  std::vector<DiffHunk> hunks;  ///< with three lines of context
  std::size_t added = 0;
  std::size_t removed = 0;
  bool cut = false;          ///< lines past the limit were left out
  std::size_t compared = 0;  ///< lines of both
};

/// The cost grows with the number of lines, not with their contents.
/// Errors: file_too_big for more lines than may be compared. REQUIRES: at most 1 MiB each.
Result<TextDiff> diff_texts(std::string_view before, std::string_view after, const DiffLimits& limits);

}  // namespace playfs::http
