// What a mount was told when it was made, so that the same can be mounted again after its process was killed.
//
// The kernel's mount table keeps the source and a few flags, but not which project, cache or agent was asked for. So
// the process of a mount writes it down in the state directory once it is mounted, and removes it when it is unmounted.
// What is found there afterwards belongs to a mount that died. One file for each mount point. Blocking; no shared
// state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/mounted.h"
#include "app/places.h"
#include "base/result.h"

namespace playfs::app {

struct MountRecord {
  std::string source;                ///< Source::text
  std::string store;                 ///< Source::directory of an embedded playground
  std::vector<std::string> options;  ///< each a comma-separated list, as after -o
  std::string device;                ///< of the mount, as the mount table has it: "0:52"
  std::string boot;                  ///< which start of the machine it was mounted in
};

/// Notes the mount that is now at `mount_point`; device and boot are found out. Answers the device.
Result<std::string> write_mount_record(const Places& places, const std::string& mount_point, MountRecord record);

/// Forgets the mount at `mount_point`, where the record is that of `device` ("" is any).
void remove_mount_record(const Places& places, const std::string& mount_point, const std::string& device);

/// The record for `mount_point`, if there is one from this start of the machine.
std::optional<MountRecord> read_mount_record(const Places& places, const std::string& mount_point);

/// The same, if it is that of `mount`.
std::optional<MountRecord> record_of(const Places& places, const MountEntry& mount);

/// The command that mounts it again as far as that is known: by its record, else by the mount table alone.
std::string mount_command(const Places& places, const MountEntry& mount);
std::string mount_command(const MountRecord& record, const std::string& mount_point);

}  // namespace playfs::app
