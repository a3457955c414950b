// Finds the mount or the clone that holds a path, and the project's work tree in it. Reads mount table and file system;
// stateless.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/tree_origin.h"
#include "base/result.h"
#include "runtime/mount_table.h"

namespace playfs::app {

/// The mount table of this process.
Result<std::vector<runtime::MountEntry>> read_mount_table();

inline constexpr std::string_view kMountType = "fuse.playfs";

/// What a mount of playfs shows, as in Source::text; "" if it is of another file system. Whoever mounts for us
/// (/dev/fd/N) may call type and source as he likes, so a mount of type "fuse" is asked. REQUIRES: it answers.
std::string source_of(const runtime::MountEntry& mount);

/// A place inside a playfs mount, or inside a clone, whose root is then `mount_point` and `work`.
struct MountedPlace {
  std::string mount_point;
  std::string source;
  std::string path;                      ///< absolute, links resolved as far as it exists
  std::string project;                   ///< the id; empty outside any project
  std::string project_directory;         ///< with `status`, `log`, `revisions/` …: projects/ID, or .playfs/project
  std::string work;                      ///< the root of the project's work tree; empty outside any project
  std::optional<std::string> in_work;    ///< `path` relative to `work` ("" is its root); nullopt if it is elsewhere
  std::optional<TreeOrigin> clone = {};  ///< where a clone is from; nullopt: a mount
};

/// nullopt if `path` (absolute, need not exist) is in no mount of playfs. Errors: timed_out if it does not answer.
Result<std::optional<MountedPlace>> find_mount(const std::string& path);

/// The same, but requires a mount or a clone, and a project. In a clone there are no control files.
Result<MountedPlace> find_project_at(const std::string& path);

}  // namespace playfs::app
