// Who may take a handle.
#pragma once

#include <string>

#include "base/result.h"
#include "vfs/async.h"

namespace playfs::vfs {

class Mount;

/// Refuses a handle that another agent than `own` carries; `own` is an id, empty for a new agent. A courtesy, not a
/// lock: another may take it between this look and the request, and other clients need not look. Who then has it,
/// `content/names.h` says.
Async<void> check_handle_is_free(Mount& mount, OperationPtr op, std::string handle, std::string own);

/// Why `agents/HANDLE.json` does not exist.
Error not_registered(const std::string& handle);

}  // namespace playfs::vfs
