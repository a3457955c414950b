#include "model/git_library.h"

#include <git2.h>

namespace playfs {

void set_up_git_library() { [[maybe_unused]] static const int users = git_libgit2_init(); }

}  // namespace playfs
