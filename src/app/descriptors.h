// The descriptors of this process: how many it may have open, and that none is left of whoever started it.
#pragma once

namespace playfs::app {

/// As many as the system lets it have: the usual soft limit of 1,024 is for programs that use select(2). For processes
/// that serve others; a limit that cannot be raised is logged, and serves.
void raise_descriptor_limit();

/// Makes sure that 0, 1 and 2 are taken, so that no file that is opened later is taken for a standard stream. One that
/// was closed still refuses to be read or written. REQUIRES: nothing was opened yet.
void hold_standard_streams();

/// Closes all above stderr, but for `kept` where it is given: a process that stays holds no lock of flock(1) and no
/// pipe that its shell handed down. REQUIRES: nothing of this process's own is open there.
void close_inherited_descriptors(int kept = -1);

}  // namespace playfs::app
