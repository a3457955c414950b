// The parts of the handshake with the kernel that depend on libfuse's version. README.md says why newer parts are not
// used.
//
// libfuse before 3.17 accepts FUSE_CAP_PARALLEL_DIROPS but never tells the kernel. Lookups in one directory are then
// serialized, and those behind one that waits for a server wait in the kernel, where no signal reaches them.
//
// It does not know FUSE_HANDLE_KILLPRIV_V2 either, which says that we clear set-id bits when a file is written,
// truncated or chowned, as work trees do. Without it the kernel requests the attribute security.capability before every
// single write, which doubles the cost; with it, once per file. Newer versions are asked for both, and 3.18 for the
// time limit.
#pragma once

#include "base/result.h"
#include "fuse/libfuse.h"

namespace playfs::fuse {

/// Seconds after which the kernel aborts the connection because of an unanswered request; 0: never. Set by the
/// administrator (fs.fuse.default_request_timeout, fs.fuse.max_request_timeout, since Linux 6.15).
unsigned request_limit_of_kernel();

/// What newer versions have to be asked for, for the operation `init`.
void ask_newer_libfuse(fuse_conn_info& connection, unsigned request_limit_s);

/// Adds what older versions leave out.
/// REQUIRES: the session is mounted, its loop has not started, and its user data is a SessionContext.
Status complete_handshake(fuse_session* session);

}  // namespace playfs::fuse
