// Checks whether a handle is free before it is registered. Functions for any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "vfs/async.h"

namespace playfs::vfs {

class Mount;

/// Refuses a handle that an agent other than `own` carries; `own` is an id, empty for a new agent. A courtesy, not a
/// lock: another agent may take it between this check and the request, and other clients need not check at all.
/// `content/names.h` decides who owns it then.
Async<void> check_handle_is_free(Mount& mount, OperationPtr op, std::string handle, std::string own);

/// Why `agents/HANDLE.json` does not exist. `is_sure`: all agents are listed.
Error not_registered(const std::string& handle, bool is_sure);

}  // namespace playfs::vfs
