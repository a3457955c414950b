// Which of the paths that an update or a merge left in conflict are not resolved yet.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "stage/stage.h"

namespace playfs::publish {

/// The hash of a published file as far as it is known without its bytes.
std::optional<ContentHash> known_hash(const FileEntry& entry);

/// Tells contents apart: that hash, or else the chunks that it is stored as.
std::string content_key(const FileEntry& entry);

/// The files that say what is ignored, with their content_key(). Where others change them, nothing that was kept here
/// is published for that, and nothing that was staged is left out: see Integration.
using RuleFiles = std::map<std::string, std::string>;
RuleFiles rules_of(const Manifest& manifest);

/// The values at a key of the project's state as conflicts name it (merge_json) that a conflict was left in: what is to
/// be edited. nullopt where there is none.
std::optional<ContentHash> hash_of_state(const Json& state, std::string_view path);

/// Those whose file still has markers, or is still as it was left, or where what theirs has still stands beside it.
Result<std::vector<stage::Conflicted>> unresolved(stage::Stage& stage);

/// Puts on disk what resolved those that are not in `left`: once they are off the list, a power loss must not bring the
/// markers back.
Status sync_resolved(stage::Stage& stage, const std::vector<stage::Conflicted>& left);

/// What to do about it, in words for a person.
std::string how_to_resolve(const stage::Conflicted& conflicted);

/// The name for what theirs has where ours stands at `path`: `path` with `ending`, and from the second on a number. Of
/// a name that is too long for that the last characters go.
std::string name_beside(std::string_view path, std::string_view ending, int number);

}  // namespace playfs::publish
