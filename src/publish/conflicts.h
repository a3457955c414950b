// Determines which paths that an update or a merge left in conflict are still unresolved.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/merge.h"
#include "stage/stage.h"

namespace playfs::publish {

/// A conflict that is not about a file has a path that begins with a slash, which no file's does: "/(state) KEY" or
/// "/(manifest) FIELD". "/(markers)" stands for files with markers that were discarded, and is never unresolved.
bool is_of_file(const stage::Conflicted& conflicted);
bool is_of_state(const stage::Conflicted& conflicted);
/// That path for a conflict of merge_versions().
std::string path_of(const Conflict& conflict);
/// A Conflicted's path as a person reads it, without that slash.
std::string shown_path(const stage::Conflicted& conflicted);

/// The labels of the markers that an update or a merge writes; the latter two are followed by a revision's id.
inline constexpr const char* kOurLabel = "work tree";
inline constexpr const char* kHeadLabel = "head ";
inline constexpr const char* kRevisionLabel = "revision ";

/// The hash of the values at the state's key that a conflict names (see merge_json), as the conflict left them for
/// editing. nullopt if there is none.
std::optional<ContentHash> hash_of_state(const Json& state, std::string_view path);

/// Conflicts whose file still has markers or is unchanged since, or whose other version still lies beside it. If some
/// were left with markers and all of those are resolved, also every staged file that has markers of such a merge.
Result<std::vector<stage::Conflicted>> unresolved(stage::Stage& stage);

/// Syncs the files that resolved conflicts not in `left`: once these are off the list, a power loss must not bring the
/// markers back.
Status sync_resolved(stage::Stage& stage, const std::vector<stage::Conflicted>& left);

/// What to do about it, in words for a person.
std::string how_to_resolve(const stage::Conflicted& conflicted);

/// The name for their version next to ours at `path`: `path` plus `ending`, plus a number from the second on. A name
/// that becomes too long loses its last characters before the ending.
std::string name_beside(std::string_view path, std::string_view ending, int number);

}  // namespace playfs::publish
