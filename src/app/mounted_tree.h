// A directory of a mount as a manifest. Blocking, but reads no contents; for commands.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "model/manifest.h"

namespace playfs::app {

/// What the attributes of a file or link tell; nullopt if there is none. A file without a known hash counts as equal to
/// those with the same claim, or else to none.
Result<std::optional<FileEntry>> entry_at(const std::string& path);

/// A missing directory counts as empty.
Result<Manifest> list_tree(const std::string& directory);

}  // namespace playfs::app
