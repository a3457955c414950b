// A tree of files that commands compare: a directory of a mount, a revision, or a clone's directory. Blocking.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "model/manifest.h"

namespace playfs::app {

class ReadableTree {
 public:
  virtual ~ReadableTree() = default;
  /// All files and links, as entry_at() describes them. Reads no contents.
  [[nodiscard]] virtual Result<Manifest> list() const = 0;
  /// The mode, size and hash of a file, or the target of a link; nullopt if there is neither. Its content is unknown
  /// unless the hash is: then it is equal to nothing, and has to be read.
  [[nodiscard]] virtual Result<std::optional<FileEntry>> entry_at(const std::string& path) const = 0;
  /// The bytes of a file; nullopt if there is no file, or no longer.
  [[nodiscard]] virtual Result<std::optional<std::string>> read(const std::string& path) const = 0;
};

}  // namespace playfs::app
