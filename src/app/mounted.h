// Finding the mount that holds a path, and the project's work tree in it. Reads the mount table and the file system;
// no shared state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/mount_table.h"
#include "base/result.h"

namespace playfs::app {

/// That of this process.
Result<std::vector<MountEntry>> read_mount_table();

inline constexpr std::string_view kMountType = "fuse.playfs";

/// A place inside a playfs mount.
struct MountedPlace {
  std::string mount_point;
  std::string source;
  std::string path;                    ///< absolute, links resolved as far as it exists
  std::string project;                 ///< the id; empty outside of any project
  std::string project_directory;       ///< with `status`, `log`, `revisions/` …: projects/ID, or .playfs/project
  std::string work;                    ///< the root of the project's work tree; empty outside of any project
  std::optional<std::string> in_work;  ///< `path` relative to `work` ("" is its root); nullopt where it is elsewhere
};

/// nullopt where `path` (absolute, need not exist) is in no mount of playfs; `timed_out` where it does not answer.
Result<std::optional<MountedPlace>> find_mount(const std::string& path);

/// The same, where there must be one, inside a project.
Result<MountedPlace> find_project_at(const std::string& path);

}  // namespace playfs::app
