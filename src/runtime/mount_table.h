// The kernel's table of mounts, /proc/self/mountinfo. Pure functions.
//
// Rejected: libmount, whose tables and iterators take as much code as the parser, and could not be fuzzed as a text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace playfs::runtime {

/// A line of the mount table.
struct MountEntry {
  std::string mount_point;
  std::string root;    ///< the directory of the file system that is mounted here; "/" except for bind mounts
  std::string type;    ///< "fuse.playfs"
  std::string source;  ///< SRC as it was mounted
  std::string device;  ///< "0:52": unique among the mounts in the table
  std::string options, super_options;  ///< comma-separated: of this mount point, of the whole file system
};

/// Whether `item` ("ro", "user_id=0") is in a comma-separated list.
bool has_option(std::string_view list, std::string_view item);

/// Skips lines that it cannot parse.
std::vector<MountEntry> parse_mount_table(std::string_view text);

/// The last mount on top of `path`'s longest mounted prefix. REQUIRES: `path` is absolute, without links.
const MountEntry* mount_holding(const std::vector<MountEntry>& table, std::string_view path);

/// Whether `path` is `directory` or is below it. REQUIRES: both are absolute, without links.
bool is_within(std::string_view path, std::string_view directory);

}  // namespace playfs::runtime
