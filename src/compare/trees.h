// The files that differ between two trees, and which of them moved, possibly edited, as git finds them. Pure; the
// caller reads the files. A change points to the entries of the trees, which have to outlive it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/manifest.h"

namespace playfs::compare {

enum class ChangeKind { added, removed, modified, renamed, mode_only };

/// One file that differs.
struct FileChange {
  ChangeKind kind = ChangeKind::modified;
  std::string path;                   ///< in the newer tree; in the older one if it was removed
  std::string old_path;               ///< of a renamed file; otherwise same as `path`
  const FileEntry* before = nullptr;  ///< nullptr if it was added
  const FileEntry* after = nullptr;
  unsigned similarity = 100;  ///< of a renamed file: how much of it is unchanged, in percent
  bool by_claim = false;      ///< a rename based only on the hash that the publisher wrote
};

/// In the order of paths, without renames. Only the manifests are compared, so the same bytes under a different claimed
/// hash count as modified.
std::vector<FileChange> changes_between(const Manifest& before, const Manifest& after);

inline constexpr unsigned kLeastSimilar = 50;
/// The limit on pairs of a removed and an added path that have no identical counterpart, and on file size: beyond
/// these, only identical files match.
inline constexpr std::size_t kMostPairs = 10'000;
inline constexpr std::size_t kLargestSimilar = 1 << 20;

/// The content of an added or a removed file; nullopt if it cannot be compared.
using ReadFile = std::function<Result<std::optional<std::string>>(const FileChange&)>;

/// Pairs removed files with added ones as renames: first those stored as the same chunks or text, then those of equal
/// hashes, then the most similar; of equal ones that of the same name. Empty files never match. Reads only files
/// without an identical counterpart or without a known hash, and none if only one of the trees has unmatched files.
/// Returns false if there were too many pairs to look for similar files. After an error of `read`, which is returned,
/// only those known to be identical are paired.
Result<bool> pair_renames(std::vector<FileChange>& changes, const ReadFile& read);

std::string_view name_of(ChangeKind kind);

}  // namespace playfs::compare
