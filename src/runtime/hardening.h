// Privileges that a daemon gives up before it holds secrets or meets strangers. If one cannot be given up, a warning is
// logged and the daemon goes on. Each holds for the whole process, permanently.
#pragma once

namespace playfs::runtime {

/// Ignores SIGPIPE: when the reader of its output is gone, the output is lost, but the process lives on.
void outlive_readers();

/// Disables core dumps: they would contain keys and other users' staged files.
void forgo_core_dumps();

/// Disables set-id execution. Not for a mount: without root it unmounts by fusermount3, which is set-id.
/// REQUIRES: no other thread is running.
void forgo_new_privileges();

/// Lets only root inspect its memory; also keeps it from a program that the kernel pipes core dumps to, which ignores
/// the core limit. Not for a mount: its user may want to list its open files, or trace it.
void forgo_inspection();

}  // namespace playfs::runtime
