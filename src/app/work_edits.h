// Changes to the files of a work tree that a command plans first and then carries out: what somebody saves in between
// is not overwritten, and what can be known to fail fails before anything changes. Blocking; for one thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/readable_tree.h"
#include "model/content_hash.h"

namespace playfs::app {

/// What is at a path; nullopt: no file or link.
struct FileState {
  FileMode mode = FileMode::regular;
  ContentHash hash;
  bool operator==(const FileState&) const = default;
};
using FileStateNow = std::optional<FileState>;

FileStateNow state_of(const FileEntry* entry, const std::optional<std::string>& content);
Result<FileStateNow> state_at(const ReadableTree& tree, const std::string& path);

class WorkEdits {
 public:
  /// `root`: the work tree's, which `work` reads; `source`: where contents come from. Both must outlive it.
  WorkEdits(std::string root, const ReadableTree& work, const ReadableTree& source)
      : root_(std::move(root)), work_(work), source_(source) {}

  // `now`: what was at the path when this was planned. False if the path was planned before.
  /// A file or link of the source.
  bool put(const std::string& path, FileMode mode, const std::string& source_path, FileStateNow now);
  bool put_text(const std::string& path, FileMode mode, std::string text, FileStateNow now);
  bool remove(const std::string& path, FileStateNow now);

  /// Whether nothing is in the way of what is to be put.
  [[nodiscard]] Status check_ways() const;
  /// Errors: conflict, if a file is not as it was planned or something is in the way. After a change, the error names
  /// what was done.
  Status carry_out();

  [[nodiscard]] std::size_t size() const { return edits_.size(); }
  [[nodiscard]] std::vector<std::string> put_paths() const;
  [[nodiscard]] std::vector<std::string> removed_paths() const;

 private:
  struct Edit {
    bool removes = false;
    FileMode mode = FileMode::regular;
    std::optional<std::string> text = {};  ///< nullopt: that of the source
    std::string source_path = {};
    FileStateNow now = {};
  };

  [[nodiscard]] bool removes(const std::string& path) const;
  [[nodiscard]] Status check_way(const std::string& path) const;
  [[nodiscard]] Result<std::string> content_of(const Edit& edit) const;
  [[nodiscard]] Status check_unchanged(const std::string& path, const Edit& edit) const;

  const std::string root_;
  const ReadableTree& work_;
  const ReadableTree& source_;
  std::map<std::string, Edit> edits_;
};

}  // namespace playfs::app
