// The descriptors of this process: their limit, and cleaning up those inherited from its parent.
#pragma once

#include <vector>

namespace playfs::runtime {

/// Raises the soft limit to the hard one: the usual 1,024 is meant for programs that use select(2). For processes that
/// serve others. If the limit cannot be raised, logs a warning and goes on.
void raise_descriptor_limit();

/// Ensures that 0, 1 and 2 are in use, so that no file opened later takes the place of a standard stream. A stream that
/// was closed still cannot be read or written. REQUIRES: nothing was opened yet.
void hold_standard_streams();

/// Closes everything above stderr except `kept`, so that a daemon holds no flock(1) lock or pipe of its shell's.
/// REQUIRES: this process opened nothing there itself.
void close_inherited_descriptors(std::vector<int> kept = {});

}  // namespace playfs::runtime
