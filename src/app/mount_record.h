// Records how a mount was made, so that it can be mounted again after its process was killed.
//
// The kernel's mount table has the source and a few flags, but not the project, cache or agent. So a mount's process
// writes them to the state directory once it is mounted, and removes the file when it is unmounted. A file that remains
// belongs to a mount that died. One file per mount point. Blocking; no shared state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/mounted.h"
#include "base/result.h"
#include "runtime/places.h"

namespace playfs::app {

struct MountRecord {
  std::string source;                ///< runtime::Source::text
  std::string store;                 ///< runtime::Source::directory of an embedded playground
  std::vector<std::string> options;  ///< each a comma-separated list, as after -o
  std::string device;                ///< of the mount, as in the mount table: "0:52"
  std::string boot;                  ///< the boot in which it was mounted
};

/// Records the mount that is now at `mount_point`; determines device and boot itself. Returns the device.
Result<std::string> write_mount_record(const runtime::Places& places, const std::string& mount_point,
                                       MountRecord record);

/// Removes the record for `mount_point` if it is that of `device` ("" for any).
void remove_mount_record(const runtime::Places& places, const std::string& mount_point, const std::string& device);

/// The record for `mount_point`, if there is one from this boot.
std::optional<MountRecord> read_mount_record(const runtime::Places& places, const std::string& mount_point);

/// The same, if it is that of `mount`.
std::optional<MountRecord> record_of(const runtime::Places& places, const runtime::MountEntry& mount);

/// The command that mounts it again, as far as known: from its record, else from the mount table alone.
std::string mount_command(const runtime::Places& places, const runtime::MountEntry& mount);
std::string mount_command(const MountRecord& record, const std::string& mount_point);

}  // namespace playfs::app
