// Secrets in files, kept by a user or handed over by an administrator or systemd's LoadCredential=. No state.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace playfs::runtime {

/// The text of an open file. Errors: permission_denied if it is not a plain file of this user's or root's, or if anyone
/// else may read it, by its mode or its ACL; file_too_big above `most` bytes. Messages name `what`; their hints give
/// the command that repairs `path`.
Result<std::string> read_open_secret(int fd, const std::string& path, const std::string& what, std::size_t most);

/// One secret that is a whole file except for the final line break. Does not follow a link at `path`.
Result<std::string> read_secret_file(const std::string& path, const std::string& what);

}  // namespace playfs::runtime
