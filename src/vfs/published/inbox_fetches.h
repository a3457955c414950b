// Attempts at the mount's inbox: which records are for its agent, and which of them were marked as seen.
#pragma once

#include "content/inbox.h"
#include "content/inbox_marks.h"
#include "vfs/attempt.h"

namespace playfs::vfs {

class Mount;

/// How old the lists may be from which the inbox is derived.
enum class InboxAge {
  now,    ///< requested by this operation
  fresh,  ///< within `refresh`
};

/// Brings the mount's inbox up to date. Records that cannot be read now are left out.
Attempt<void> inbox_here(Mount& mount, const OperationPtr& op, InboxAge age);
/// Brings the marks up to date with those of other processes.
Attempt<void> marks_here(Mount& mount, const OperationPtr& op);

}  // namespace playfs::vfs
