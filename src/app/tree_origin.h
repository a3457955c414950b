// From which revision a plain directory was made: what tells an edit in it from something that it never had.
//
// An exported tree carries a mark, `.playfs/tree.json`. Of a plain directory that was imported the same is kept in the
// state directory, so that nothing is written into a folder of the user's. Without either, an import could not know
// whether a file that is missing was deleted or was published since.
//
// A mark names a service and decides what a publication undoes, so only one that belongs to this user is believed, and
// nothing published can be one: no tree has a path with `.playfs` in it (model/path.h). Blocking; no shared state.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "model/ids.h"

namespace playfs::app {

/// The folder at the root of an exported tree. Never published, never imported.
inline constexpr const char* kMarkFolder = ".playfs";

struct TreeOrigin {
  std::string site;  ///< Source::text
  std::string base_path;
  ProjectId project;
  RevisionId revision;
};

/// The mark in `directory`; nullopt where there is none, or where it is another user's.
Result<std::optional<TreeOrigin>> read_mark(const std::string& directory);
/// The mark in `directory` or in the nearest directory above it that has one; what cannot be read is none.
std::optional<TreeOrigin> find_mark(const std::string& directory);
/// Written at once or not at all, and synced. REQUIRES: what it speaks of is on disk before.
Status write_mark(const std::string& directory, const TreeOrigin& origin);

/// The same in a file of its own.
Result<std::optional<TreeOrigin>> read_origin(const std::string& path);
Status write_origin(const std::string& path, const TreeOrigin& origin);

}  // namespace playfs::app
