// What libfuse leaves out of its handshake with the kernel.
//
// libfuse before 3.17 takes FUSE_CAP_PARALLEL_DIROPS and never tells the kernel. Lookups in one directory then happen
// one at a time, and behind one that waits for a server the others wait in the kernel where no signal reaches them.
//
// It knows no word for FUSE_HANDLE_KILLPRIV_V2 either: that set-id bits are taken away by us when a file is written,
// truncated or given away, as work trees do. Without it the kernel asks for the attribute security.capability before
// every single write, which doubles their cost; with it, once for each file.
#pragma once

#include "base/result.h"
#include "fuse/libfuse.h"

namespace playfs::fuse {

/// Seconds after which the kernel ends the whole connection for a request that was not answered; 0: it does not. As the
/// administrator has set it (fs.fuse.default_request_timeout, fs.fuse.max_request_timeout, since Linux 6.15).
unsigned request_limit_of_kernel();

/// Lets the kernel send lookups and listings of one directory at the same time. REQUIRES: the session is mounted, its
/// loop has not begun, and its user data is a Context.
Status complete_handshake(fuse_session* session);

}  // namespace playfs::fuse
