// Finds files that moved between two trees, possibly edited, as git does. The caller reads the files.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "app/text_diff.h"
#include "base/result.h"

namespace playfs::app {

/// By new path.
using Renames = std::map<std::string, Renamed>;

inline constexpr unsigned kLeastSimilar = 50;
/// The limit on pairs of a removed and an added path, and on file size: beyond these, only identical files match.
inline constexpr std::size_t kMostPairs = 10'000;
inline constexpr std::size_t kLargestSimilar = 1 << 20;

/// The share of the larger content that is also in the other, in percent: by lines, long ones in pieces, at any
/// position. 100 only for equal contents.
unsigned similarity(std::string_view before, std::string_view after);

/// nullopt if there is no file.
using ReadSide = std::function<Result<std::optional<DiffSide>>(const std::string& path)>;

/// Each path is in at most one pair; the most similar are paired first. Empty files never match.
Result<Renames> find_renames(const std::set<std::string>& gone, const std::set<std::string>& come,
                             const ReadSide& read_before, const ReadSide& read_after);

}  // namespace playfs::app
