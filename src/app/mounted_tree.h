// A directory of a mount, read as a tree: as a manifest, and the content of its files. Blocking; for commands.
//
// A stranger may have chosen the tree's names and links, so no link is followed: `keys/id` is no file of a tree whose
// `keys` is a link, wherever that leads.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "model/manifest.h"

namespace playfs::app {

class MountedTree {
 public:
  /// `root`: empty for a tree without files. A missing directory counts as empty, too.
  explicit MountedTree(std::string root) : root_(std::move(root)) {}

  /// All files and links, as entry_at() describes them. Reads no contents.
  [[nodiscard]] Result<Manifest> list() const;
  /// The mode, size and hash of a file, or the target of a link; nullopt if there is neither. Its content is unknown
  /// unless the hash is: then it is equal to nothing, and has to be read.
  [[nodiscard]] Result<std::optional<FileEntry>> entry_at(const std::string& path) const;
  /// The bytes of a file; nullopt if there is no file, or no longer.
  [[nodiscard]] Result<std::optional<std::string>> read(const std::string& path) const;

 private:
  std::string root_;
};

}  // namespace playfs::app
