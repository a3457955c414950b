// A directory of a mount, or of a clone, read as a tree: as a manifest, and the content of its files. Blocking; for
// commands.
//
// A stranger may have chosen the tree's names and links, so no link is followed: `keys/id` is no file of a tree whose
// `keys` is a link, wherever that leads. Nor is anything of playfs's own folder in a clone.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "app/readable_tree.h"

namespace playfs::app {

class MountedTree final : public ReadableTree {
 public:
  /// `root`: empty for a tree without files. A missing directory counts as empty, too.
  explicit MountedTree(std::string root) : root_(std::move(root)) {}

  [[nodiscard]] Result<Manifest> list(const std::string& top) const override;
  [[nodiscard]] Result<std::optional<FileEntry>> entry_at(const std::string& path) const override;
  [[nodiscard]] Result<std::vector<std::string>> refused() const override;
  [[nodiscard]] Result<std::optional<std::string>> read(const std::string& path) const override;

 private:
  std::string root_;
};

}  // namespace playfs::app
