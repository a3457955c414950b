// Secrets in files, as a user keeps them, or as an administrator or systemd's LoadCredential= hands them over. No
// state.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace playfs::app {

/// The text of an open file. Fails with permission_denied where that is no plain file of this user or of root, or where
/// anybody else may read it, by its mode or its access control list; with file_too_big where it has more than `most`
/// bytes. Errors name `what`, and `path` in the command that mends them.
Result<std::string> read_open_secret(int fd, const std::string& path, const std::string& what, std::size_t most);

/// One secret that is all of a file but for the line break at its end. Follows no link at `path`.
Result<std::string> read_secret_file(const std::string& path, const std::string& what);

}  // namespace playfs::app
