// What a process that stays gives up before it holds secrets or meets strangers. What cannot be given up is logged, and
// serves all the same. Each is for the whole process and for good.
#pragma once

namespace playfs::app {

/// Outlives whoever reads its log or started it: what it writes to them then is lost, and not it.
void outlive_readers();

/// Leaves no core dump: it would hold keys and what others have staged.
void forgo_core_dumps();

/// Runs no set-id program with more rights than its own. Not for a mount: who is not root unmounts by fusermount3,
/// which is one. REQUIRES: no other thread runs.
void forgo_new_privileges();

/// Lets nobody but root look into its memory, nor a program that takes core dumps from the kernel by a pipe, which no
/// limit stops. Not for a mount: its user may want to see what it has open, or trace it.
void forgo_inspection();

}  // namespace playfs::app
