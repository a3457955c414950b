// The files of a published revision as a tree that commands compare. Blocking; `stack` must outlive it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "app/readable_tree.h"
#include "model/tree.h"
#include "runtime/client_stack.h"

namespace playfs::app {

class PublishedTree final : public ReadableTree {
 public:
  /// `revision`: nullptr for a tree without files.
  PublishedTree(runtime::ClientStack& stack, RevisionTreePtr revision)
      : stack_(stack), revision_(std::move(revision)) {}

  [[nodiscard]] Result<Manifest> list(const std::string& top) const override;
  [[nodiscard]] Result<std::optional<FileEntry>> entry_at(const std::string& path) const override;
  [[nodiscard]] Result<std::vector<std::string>> refused() const override;
  [[nodiscard]] Result<std::optional<std::string>> read(const std::string& path) const override;

 private:
  [[nodiscard]] Result<FileEntry> described(const std::string& path, const FileEntry& entry) const;

  runtime::ClientStack& stack_;
  const RevisionTreePtr revision_;
};

/// That of the revision with this id; "" has no files.
Result<std::unique_ptr<ReadableTree>> published_tree(runtime::ClientStack& stack, const std::string& revision);

}  // namespace playfs::app
