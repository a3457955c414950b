// Secrets in files of their own, as an administrator or systemd's LoadCredential= hands them over.
#pragma once

#include <string>

#include "base/result.h"

namespace playfs::app {

/// The text of `path` without the line break at its end. Fails where that is no plain file of this user or of root, or
/// where anybody else may read it, by its mode or its access control list. `what` is named in errors.
Result<std::string> read_secret_file(const std::string& path, const std::string& what);

}  // namespace playfs::app
