// Finding the mount that holds a path, and the project's work tree in it. Reads the mount table and the file system;
// no shared state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace playfs::app {

/// A line of the mount table.
struct MountEntry {
  std::string mount_point;
  std::string root;    ///< the directory of the file system that is mounted there; "/" but for bind mounts
  std::string type;    ///< "fuse.playfs"
  std::string source;  ///< SRC as it was mounted
  std::string device;  ///< "0:52": tells it from every other mount while it is in the table
  std::string options, super_options;  ///< comma-separated: of this mount point, of the whole file system
};

/// Whether `item` ("ro", "user_id=0") is in a comma-separated list.
bool has_option(std::string_view list, std::string_view item);

/// Parses /proc/self/mountinfo; lines that are not understood are left out.
std::vector<MountEntry> parse_mount_table(std::string_view text);
Result<std::vector<MountEntry>> read_mount_table();

/// The last mount on top of `path`'s longest mounted prefix. REQUIRES: absolute, without links.
const MountEntry* mount_holding(const std::vector<MountEntry>& table, std::string_view path);

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
