// libgit2, which merges and compares texts. Thread-safe.
#pragma once

namespace playfs {

/// To be called before libgit2 is used; the first call sets it up for the life of the program, since that takes longer
/// than to merge or compare two small texts.
void set_up_git_library();

}  // namespace playfs
