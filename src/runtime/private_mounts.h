// Lets a process of any user mount, in a mount namespace of its own. A process that has no right to create one does so
// in a new user namespace. Only this process and those that it starts see what is mounted there; it disappears with the
// last of them.
#pragma once

#include "base/result.h"

namespace playfs::runtime {

/// Moves this process into a mount namespace of its own. Users and groups stay the same; in a user namespace, only this
/// user's and group's are known, and programs that this process executes have no rights that it did not have before.
/// Fails, changing nothing, where the kernel, a chroot or a container refuses that: not_permitted, with the reason and
/// the cure. REQUIRES: no other thread is running.
Status separate_mounts();

}  // namespace playfs::runtime
