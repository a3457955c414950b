// The read-only tree of one revision: immutable, so the kernel may cache all of it indefinitely.
//
// Also shown as `work/` where that is not writable (a read-only mount, or another process has the work tree open);
// `refusal` then says why. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "model/path.h"
#include "model/tree.h"
#include "vfs/children.h"
#include "vfs/node.h"
#include "vfs/published/file_content.h"

namespace playfs::vfs {

/// What all nodes of one tree share.
struct TreeView {
  RevisionTreePtr revision;
  ProjectId project;
  Error refusal;   ///< the error for every change
  PathSet hidden;  ///< files that are not shown, and are listed with the refused entries
};
using TreeViewPtr = std::shared_ptr<const TreeView>;

/// Changes fail with EROFS. A null revision is an empty tree.
TreeViewPtr read_only_view(Mount& mount, RevisionTreePtr revision, ProjectId project);
TreeViewPtr view_with_refusal(Mount& mount, RevisionTreePtr revision, ProjectId project, Error refusal);

/// The attribute "user.playfs.NAME" of a published file or directory, as its publisher claims it. `entry` is nullptr
/// for directories.
std::optional<std::string> published_xattr(const RevisionTree& revision, const ProjectId& project,
                                           const FileEntry* entry, const std::string& name);

/// Whether a link at `path` stays inside the tree, whatever else the tree contains.
bool stays_inside(const std::string& path, const std::string& target);
/// Whether the kernel can be given this target of a published link: bounded, without NUL, and inside the tree if the
/// mount requires that.
Status check_link_target(Mount& mount, const std::string& path, const std::string& target);

class RevisionDirectory final : public Node {
 public:
  /// The root of a tree.
  RevisionDirectory(Mount& mount, NodePtr parent, std::string name, TreeViewPtr view);
  RevisionDirectory(Mount& mount, NodePtr parent, std::string name, TreeViewPtr view, std::string path_in_tree,
                    const Tree::Directory& directory);

  [[nodiscard]] const RevisionId& revision() const { return view_->revision->revision.id; }
  Attempt<AttributesReply> attributes(const OperationPtr& op) override;
  Attempt<LookupResult> lookup(const OperationPtr& op, const std::string& name) override;
  Attempt<void> list(const OperationPtr& op, std::uint64_t offset, bool with_entries, const Emit& emit) override;
  Attempt<std::optional<std::string>> xattr(const OperationPtr& op, const std::string& name) override;

 protected:
  Error refusal() const override { return view_->refusal; }

 private:
  NodePtr child(const std::string& name, const Tree::Child& child);
  [[nodiscard]] bool is_hidden(const std::string& name, const Tree::Child& child) const;

  const TreeViewPtr view_;
  const std::string path_in_tree_;  ///< "" for the root
  const Tree::Directory& directory_;
  Children children_;
};

/// A file or symbolic link.
class RevisionFile final : public Node {
 public:
  RevisionFile(Mount& mount, NodePtr parent, std::string name, TreeViewPtr view, std::string path_in_tree,
               const FileEntry& entry);

  Attempt<AttributesReply> attributes(const OperationPtr& op) override;
  Attempt<AttributesReply> attributes_at_once(const OperationPtr& op) override;
  Attempt<std::string> read_link(const OperationPtr& op) override;
  Attempt<void> looked_up(const OperationPtr& op) override;
  Attempt<std::string> read(const OperationPtr& op, std::uint64_t offset, std::size_t size) override;
  Attempt<std::optional<std::string>> xattr(const OperationPtr& op, const std::string& name) override;

 protected:
  Error refusal() const override { return view_->refusal; }

 private:
  [[nodiscard]] FileRef file() const { return {view_->revision, path_in_tree_, &entry_}; }
  [[nodiscard]] Attempt<std::string> link_target();
  [[nodiscard]] AttributesReply with_size(std::uint64_t size) const;

  const TreeViewPtr view_;
  const std::string path_in_tree_;
  const FileEntry& entry_;
  ToldSize size_;
};

}  // namespace playfs::vfs
