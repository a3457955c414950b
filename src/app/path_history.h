// Which revisions of a history changed what is at a path. Blocking; for one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/readable_tree.h"
#include "model/ids.h"

namespace playfs::app {

/// The files of a revision.
using TreeOf = std::function<Result<std::unique_ptr<ReadableTree>>(const std::string& revision)>;

class PathHistory {
 public:
  /// `path`: "" for all. `text`: unless empty, only a change of how often it occurs counts.
  PathHistory(TreeOf tree_of, std::string path, std::string text)
      : tree_of_(std::move(tree_of)), path_(std::move(path)), text_(std::move(text)) {}

  /// Whether the revision differs there from each of its parents: a merge that has what one of them has changed
  /// nothing. `parents`: those that exist.
  Result<bool> was_changed_in(const RevisionId& revision, const std::vector<RevisionId>& parents);
  /// Whether files were not searched for the text, since they are too large.
  [[nodiscard]] bool left_files_out() const { return left_out_; }

 private:
  struct Version {
    RevisionId id;
    std::unique_ptr<ReadableTree> tree;
    Manifest files;  ///< at and below the path
  };
  using VersionPtr = std::shared_ptr<const Version>;

  Result<VersionPtr> version(const RevisionId& id);
  Result<bool> differ(const Version& before, const Version& after);
  Result<std::size_t> occurrences(const Version& version, const std::string& path, const FileEntry* entry);

  const TreeOf tree_of_;
  const std::string path_, text_;
  std::list<VersionPtr> recent_;  ///< newest first: a parent is a child next
  bool left_out_ = false;
};

}  // namespace playfs::app
