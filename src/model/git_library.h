// libgit2, used to merge and compare texts, and loaded when that is first done. Thread-safe.
#pragma once

#include <git2.h>

#include "base/late_library.h"

namespace playfs {

#ifdef PLAYFS_PORTABLE
// Every release of Debian has another version, so the portable program contains the one that it was built with.
#define PLAYFS_GIT(function) using ::function
#else
inline constinit const LateLibrary kGit("libgit2.so." LIBGIT2_SOVERSION, "libgit2-" LIBGIT2_SOVERSION);
#define PLAYFS_GIT(function) PLAYFS_LATE(kGit, function)
#endif

PLAYFS_GIT(git_buf_dispose);
PLAYFS_GIT(git_diff_buffers);
PLAYFS_GIT(git_diff_options_init);
PLAYFS_GIT(git_error_last);
PLAYFS_GIT(git_libgit2_init);
PLAYFS_GIT(git_merge_file);
PLAYFS_GIT(git_merge_file_input_init);
PLAYFS_GIT(git_merge_file_options_init);
PLAYFS_GIT(git_merge_file_result_free);
PLAYFS_GIT(git_odb_hash);
PLAYFS_GIT(git_oid_fmt);
PLAYFS_GIT(git_patch_free);
PLAYFS_GIT(git_patch_from_buffers);
PLAYFS_GIT(git_patch_to_buf);

/// Call before using libgit2. The first call initialises it for the life of the process, because that takes longer than
/// merging or comparing two small texts. Fails if it is not installed.
[[nodiscard]] Status set_up_git_library();

}  // namespace playfs
