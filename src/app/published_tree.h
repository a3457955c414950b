// The files of a published revision as a tree that commands compare. Blocking; `stack` must outlive it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "app/readable_tree.h"
#include "model/path.h"
#include "model/tree.h"
#include "runtime/client_stack.h"

namespace playfs::app {

class PublishedTree final : public ReadableTree {
 public:
  /// `revision`: nullptr for a tree without files.
  /// `hidden`: files to leave out, and to list with the refused entries.
  PublishedTree(runtime::ClientStack& stack, RevisionTreePtr revision, PathSet hidden = {})
      : stack_(stack), revision_(std::move(revision)), hidden_(std::move(hidden)) {}

  [[nodiscard]] Result<Manifest> list(const std::string& top) const override;
  [[nodiscard]] Result<std::optional<FileEntry>> entry_at(const std::string& path) const override;
  [[nodiscard]] Result<std::vector<std::string>> refused() const override;
  [[nodiscard]] Result<std::optional<std::string>> read(const std::string& path) const override;

 private:
  /// nullptr: there is none, or it is hidden.
  [[nodiscard]] const FileEntry* shown(const std::string& path) const;
  [[nodiscard]] Result<FileEntry> described(const std::string& path, const FileEntry& entry) const;

  runtime::ClientStack& stack_;
  const RevisionTreePtr revision_;
  const PathSet hidden_;
};

/// That of the revision with this id; "" has no files. `hides` says what to leave out.
using Hides = std::function<PathSet(const Manifest&)>;
Result<std::unique_ptr<ReadableTree>> published_tree(runtime::ClientStack& stack, const std::string& revision,
                                                     const Hides& hides = {});

}  // namespace playfs::app
