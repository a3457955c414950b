// A mount's own status: read from its files, through the kernel like any other client. Blocking.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace playfs::app {

struct StagedProject {
  std::string id;
  std::string name;
  std::uint64_t staged = 0;   ///< paths
  std::uint64_t pending = 0;  ///< paths of a publication in progress
};

struct MountStatus {
  pid_t pid = 0;                      ///< of the daemon; 0: unknown
  bool publishing = false;            ///< a publication makes progress: it neither ended nor waits for the service
  std::vector<StagedProject> staged;  ///< of the projects in use in this mount
};

Result<MountStatus> read_mount_status(const std::string& mount_point);

/// Whether its service tells it of changes, so that looking at its files sends no request.
bool is_told_of_changes(const std::string& mount_point);

}  // namespace playfs::app
