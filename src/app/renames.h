// Which files went from one path to another between two trees, perhaps changed on the way, as git tells it. The files
// are read by whoever asks.
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

/// By the path after.
using Renames = std::map<std::string, Renamed>;

inline constexpr unsigned kLeastSimilar = 50;
/// Pairs of a path that went and one that came, and the size of each: past these only files that are wholly the same
/// are found.
inline constexpr std::size_t kMostPairs = 10'000;
inline constexpr std::size_t kLargestSimilar = 1 << 20;

/// The part of the larger content that the other has too, in percent: lines, long ones in pieces, wherever they stand.
/// 100 only for equal ones.
unsigned similarity(std::string_view before, std::string_view after);

/// nullopt where there is no file.
using ReadSide = std::function<Result<std::optional<DiffSide>>(const std::string& path)>;

/// Each path is in one pair at most; what is more alike goes first. Empty files are not like any other.
Result<Renames> find_renames(const std::set<std::string>& gone, const std::set<std::string>& come,
                             const ReadSide& read_before, const ReadSide& read_after);

}  // namespace playfs::app
