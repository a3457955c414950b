// One inode of a work tree: file, directory, link, fifo, socket or device.
//
// Local changes come through the kernel, so it may cache everything indefinitely; other changes are invalidated name by
// name (WorkTree). Published bytes are read through `content/`; the first change copies them up into the stage. A node
// keeps its inode alive, linked or not, while the kernel refers to it. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "stage/at_once.h"
#include "stage/stage.h"
#include "vfs/attempt_driver.h"
#include "vfs/attempt_fetches.h"
#include "vfs/node.h"
#include "vfs/published/file_content.h"
#include "vfs/work/work_tree.h"

namespace playfs::vfs {

class WorkNode final : public Node {
 public:
  WorkNode(Mount& mount, NodePtr parent, std::string name, std::shared_ptr<WorkTree> tree, stage::InodePtr inode);
  ~WorkNode() override;

  [[nodiscard]] std::uint64_t ino() const override;
  [[nodiscard]] std::string path() const override;
  Attempt<std::shared_ptr<WorkTree>> work_tree(const OperationPtr& op) override;
  [[nodiscard]] std::optional<std::string> path_in_work() const override;

  // work_file.cpp
  Attempt<AttributesReply> attributes(const OperationPtr& op) override;
  Attempt<AttributesReply> attributes_at_once(const OperationPtr& op) override;
  Attempt<AttributesReply> set_attributes(const OperationPtr& op, const SetAttributes& change) override;
  Attempt<std::string> read_link(const OperationPtr& op) override;
  Attempt<void> looked_up(const OperationPtr& op) override;
  Attempt<std::string> read(const OperationPtr& op, std::uint64_t offset, std::size_t size) override;
  Attempt<std::size_t> write(const OperationPtr& op, std::uint64_t offset, const std::string& data) override;
  Attempt<void> sync(const OperationPtr& op) override;
  Attempt<void> allocate(const OperationPtr& op, int mode, std::uint64_t offset, std::uint64_t length) override;
  Attempt<std::uint64_t> seek(const OperationPtr& op, std::uint64_t offset, int whence) override;
  Attempt<std::optional<std::string>> xattr(const OperationPtr& op, const std::string& name) override;
  Attempt<void> set_xattr(const OperationPtr& op, const std::string& name) override;
  Attempt<void> remove_xattr(const OperationPtr& op, const std::string& name) override;

  // work_directory.cpp
  Attempt<LookupResult> lookup(const OperationPtr& op, const std::string& name) override;
  Attempt<void> list(const OperationPtr& op, std::uint64_t offset, bool with_entries, const Emit& emit) override;
  Attempt<LookupResult> make_node(const OperationPtr& op, const std::string& name, mode_t mode, dev_t device) override;
  Attempt<LookupResult> make_directory(const OperationPtr& op, const std::string& name, mode_t mode) override;
  Attempt<LookupResult> make_symlink(const OperationPtr& op, const std::string& name,
                                     const std::string& target) override;
  Attempt<LookupResult> link(const OperationPtr& op, const NodePtr& node, const std::string& name) override;
  Attempt<void> unlink(const OperationPtr& op, const std::string& name) override;
  Attempt<void> remove_directory(const OperationPtr& op, const std::string& name) override;
  Attempt<void> rename(const OperationPtr& op, const std::string& name, const NodePtr& new_parent,
                       const std::string& new_name, unsigned flags) override;

 private:
  [[nodiscard]] stage::Stage& stage() const { return tree_->stage(); }
  [[nodiscard]] NodeAttributes shown(const stage::Attributes& attributes) const;
  /// `size_below`, an Attempt<std::uint64_t>(FileRef), returns the size of published content.
  template <class Size>
  [[nodiscard]] Attempt<AttributesReply> attributes_with(Size size_below);
  [[nodiscard]] std::uint64_t ino_of(const stage::InodePtr& inode, std::uint64_t ino) const;
  [[nodiscard]] Attempt<std::string> link_target();
  /// Copies published bytes up into the stage, so that they can be changed.
  [[nodiscard]] Attempt<void> bring_up();
  /// A publication that completes turns an inode's staged bytes into published ones, possibly between two steps of an
  /// attempt. Then the attempt is rerun.
  template <class T>
  [[nodiscard]] Attempt<T> or_again(Result<T> result) const;
  /// Runs `change`, a Result<T>(), on the stage: right here, or on the disk threads if it would have to wait for the
  /// disk.
  template <class T, class F>
  [[nodiscard]] Attempt<T> without_waiting(const OperationPtr& op, F change);
  [[nodiscard]] Attempt<stage::Attributes> changed_attributes(const OperationPtr& op,
                                                              const stage::AttributeChange& change);
  /// Set-id bits do not survive a change by anyone who could not set them.
  [[nodiscard]] Attempt<void> strip_set_id(const OperationPtr& op);

  [[nodiscard]] Result<stage::Creation> creation(const Caller& caller, mode_t mode, bool directory) const;
  [[nodiscard]] Attempt<LookupResult> found(const OperationPtr& op, const stage::InodePtr& inode);
  [[nodiscard]] std::uint64_t parent_ino() const;
  /// Whether the mount's own `.playfs/` hides this name: at the root of a work tree that is mounted alone.
  [[nodiscard]] bool is_hidden(std::string_view name) const;

  const std::shared_ptr<WorkTree> tree_;
  const stage::InodePtr inode_;
  std::atomic<bool> may_be_set_id_ = true;
  ToldSize size_;  ///< while the bytes are the published ones
};

template <class T>
Attempt<T> WorkNode::or_again(Result<T> result) const {
  if (!result && result.error().code == ErrorCode::busy && stage().lower_content(inode_)) {
    return missing(on_disk(mount(), [] { return Status(); }));
  }
  if (!result) return fail(std::move(result).error());
  if constexpr (std::is_void_v<T>) {
    return {};
  } else {
    return std::move(*result);
  }
}

template <class T, class F>
Attempt<T> WorkNode::without_waiting(const OperationPtr& op, F change) {
  // Only the log can say what the errno of a refusal is about, if it is about files that are hidden.
  auto explained = [&](Result<T> result) -> Attempt<T> {
    const auto code = result ? ErrorCode::internal : result.error().code;
    const bool is_refusal = code == ErrorCode::not_permitted || code == ErrorCode::not_empty;
    if (is_refusal && !result.error().hint.empty()) op->note(kRefused);
    return or_again(std::move(result));
  };
  if (auto done = op->outcome<Result<T>>()) return explained(std::move(*done));
  {
    stage::AtOnce at_once;
    Result<T> result = change();
    if (result || !at_once.refused()) return explained(std::move(result));
  }
  return missing(on_disk(mount(), [self = shared_from_this(), tree = tree_, inode = inode_, op, change]() -> Status {
    Result<T> result = change();
    // A publication has moved the bytes below in the meantime: the next attempt copies them up again.
    const bool again = !result && result.error().code == ErrorCode::busy && tree->stage().lower_content(inode);
    if (!again) op->set_outcome(std::move(result));
    return {};
  }));
}

}  // namespace playfs::vfs
