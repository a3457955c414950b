// A manifest as nested directories: the shape of a read-only tree, without I/O.
//
// Immutable once built, so threads share it without locks (shared_ptr<const Tree>).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "model/records.h"

namespace playfs {

class Tree {
 public:
  struct Directory;
  /// A file (owned by the tree's manifest) or a subdirectory.
  using Child = std::variant<const FileEntry*, std::unique_ptr<Directory>>;
  struct Directory {
    std::map<std::string, Child, std::less<>> children;  ///< by name, in byte order
    /// nullptr if absent or of the other kind.
    [[nodiscard]] const Directory* directory(std::string_view name) const;
    [[nodiscard]] const FileEntry* file(std::string_view name) const;
  };

  explicit Tree(Manifest manifest);

  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  [[nodiscard]] const Directory& root() const { return root_; }
  /// "" is the root; nullptr if the path is not a directory.
  [[nodiscard]] const Directory* directory_at(std::string_view path) const;
  [[nodiscard]] const FileEntry* file_at(std::string_view path) const;

 private:
  Manifest manifest_;
  Directory root_;
};

/// A revision with its tree, which shown trees, the stage's base and publications are based on. The manifest lives in
/// `tree`; `revision.manifest` is empty.
struct RevisionTree {
  explicit RevisionTree(Revision from) : tree(std::move(from.manifest)), revision(std::move(from)) {
    revision.manifest = {};
  }
  Tree tree;
  Revision revision;
};
using RevisionTreePtr = std::shared_ptr<const RevisionTree>;

/// Empty if there is no revision.
inline RevisionId id_of(const RevisionTreePtr& tree) { return tree ? tree->revision.id : RevisionId(); }

/// One published file: its entry and location. Keeps its revision alive.
struct FileRef {
  RevisionTreePtr revision;
  std::string path;
  const FileEntry* entry = nullptr;  ///< owned by revision->tree
};

}  // namespace playfs
