// The revision that a plain directory was made from. It distinguishes deleting a file from never having had it.
//
// An exported tree carries a mark, `.playfs/tree.json`. It is written before the files, and says until
// the end that they are not all there: an export may be killed, or leave out what cannot be had. For an imported plain
// directory the same is stored in the state directory, so that nothing is written into the user's folder. Without
// either, an import could not know whether a missing file was deleted here or published since.
//
// A mark names a service and decides what a publication undoes. So it only counts if it belongs to this user, and it
// cannot be published: no tree has a path with `.playfs` in it (model/path.h). Blocking; no shared state.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "model/ids.h"
#include "model/instructions.h"

namespace playfs::app {

/// The folder at the root of an exported tree or a clone. Never published, never imported.
inline constexpr const char* kMarkFolder = ".playfs";

enum class Extent {
  whole,
  lacks_files,  ///< some could not be had, so nobody deleted them
  unfinished,   ///< being exported, or the export was killed: files may be missing or cut short
};

struct TreeOrigin {
  std::string site;  ///< runtime::Source::text
  std::string base_path;
  ProjectId project;
  RevisionId revision;
  Extent extent = Extent::whole;
  /// Of the export that made the directory, the same as long as the mark is there. In a separate file: of the mark that
  /// was in the directory then.
  std::string export_id = {};
  /// Of a clone: which files that give instructions to agents it shows. Clones of earlier versions have them all.
  Instructions instructions = Instructions::show;
};

/// The mark in `directory`. One that does not count, or cannot be read, is an error rather than none: it may say that
/// files are missing. So is such a mark of a clone.
Result<std::optional<TreeOrigin>> read_mark(const std::string& directory);
/// The mark of a clone, `.playfs/clone.json`: `directory` is its root. `revision` is the one that it was made from.
Result<std::optional<TreeOrigin>> read_clone_mark(const std::string& directory);
Status write_clone_mark(const std::string& directory, const TreeOrigin& origin);
/// Whether nothing of it was removed.
bool has_whole_clone_mark(const std::string& directory);
/// The root of the clone that holds the absolute path; an unreadable mark is an error.
struct CloneFound {
  std::string root;
  TreeOrigin origin;
};
Result<std::optional<CloneFound>> find_clone(const std::string& path);
/// The mark of an exported tree or of a clone in `directory` or in the nearest parent that has one; an unreadable one
/// does not count.
std::optional<TreeOrigin> find_mark(const std::string& directory);
/// Atomic and synced. REQUIRES: the tree that it describes is on disk, unless it is said to be unfinished.
Status write_mark(const std::string& directory, const TreeOrigin& origin);

/// The same in a separate file.
Result<std::optional<TreeOrigin>> read_origin(const std::string& path);
Status write_origin(const std::string& path, const TreeOrigin& origin);

}  // namespace playfs::app
