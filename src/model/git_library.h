// libgit2, used to merge and compare texts. Thread-safe.
#pragma once

namespace playfs {

/// Call before using libgit2. The first call initialises it for the life of the process, because that takes longer than
/// merging or comparing two small texts.
void set_up_git_library();

}  // namespace playfs
