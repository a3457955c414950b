#include "model/git_library.h"

namespace playfs {

Status set_up_git_library() {
#ifndef PLAYFS_PORTABLE
  PLAYFS_CHECK(kGit.load());
#endif
  [[maybe_unused]] static const int users = git_libgit2_init();
  return {};
}

}  // namespace playfs
