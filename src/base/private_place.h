// Directories and databases of one user. What others could write to is made private, and this is logged: the user's
// umask or a chmod may have opened it, and refusing would stop work that is safe from then on. What belongs to another
// user is refused. Thread-safe.
#pragma once

#include <string>

#include "base/result.h"

namespace playfs {

/// The permissions that no private file or directory has.
inline constexpr unsigned kOthersWrite = 022;

/// Checks that a directory is this user's. If others could write to it, its mode becomes 0700. Refuses what is shared
/// on purpose: a directory with the sticky or the set-group-ID bit that others can write to.
Status keep_private(const std::string& directory);

/// Checks that a directory to which others can write may be made private to hold `file`: it contains `file`, is empty,
/// or does not exist. Any other such directory serves another purpose.
Status check_may_become_private(const std::string& directory, const std::string& file);

/// As make_private_directory(path), also for the directories from `top`, which is above it, down to `path`: others
/// could put another one in its place. Of these, all but `path` may be links of this user. Nothing is asked of `top`'s
/// own parents: in containers a home directory often belongs to another user.
Status make_private_directory_below(const std::string& top, const std::string& path);

/// Takes the permission to write a file from others, if there is one. Refuses what is not a regular file of this
/// user's.
Status keep_file_private(const std::string& path);

}  // namespace playfs
