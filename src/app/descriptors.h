// How many descriptors this process may have open.
#pragma once

namespace playfs::app {

/// As many as the system lets it have: the usual soft limit of 1,024 is for programs that use select(2). For processes
/// that serve others; a limit that cannot be raised is logged, and serves.
void raise_descriptor_limit();

}  // namespace playfs::app
