// A node: what the kernel calls an inode. The base of all kinds, with the answer to what a kind cannot do.
//
// Every method is an attempt (attempt.h): it answers from what is here or says what is missing. Nodes are kept alive
// by the kernel's references (node_table.h), by their children, and by operations under way; the mount outlives them
// all. Thread-safe: several operations may run on one node at once.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vfs/attempt.h"
#include "vfs/file_system.h"

namespace playfs::vfs {

class Mount;
class Node;
class WorkTree;
using NodePtr = std::shared_ptr<Node>;

/// The attributes that playfs makes: read-only everywhere.
inline constexpr std::string_view kXattrPrefix = "user.playfs.";

/// What a lookup found, or that there is nothing (`node` empty), and for how long the kernel may believe it.
struct Found {
  NodePtr node;
  AttributesReply attributes;
  double entry_timeout = 0;
};

/// Stands for a size that nobody knows yet. The kernel never shows it: it is given for no time at all, so the kernel
/// asks for the attributes before it lets anybody open the file or shows them. Where an answer of it crossed another
/// one all the same, nothing can be written behind such an end.
inline constexpr std::uint64_t kUnknownSize = std::uint64_t{1} << 62;

class Node : public std::enable_shared_from_this<Node> {
 public:
  /// `parent` is empty for the root.
  Node(Mount& mount, NodePtr parent, std::string name);
  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// The kernel's name for it: one number for as long as the object lives.
  [[nodiscard]] NodeId id() const { return id_; }
  /// What stat shows for it.
  [[nodiscard]] virtual std::uint64_t ino() const;
  /// Relative to the mount, for messages.
  [[nodiscard]] virtual std::string path() const;
  [[nodiscard]] std::string path_below(const std::string& name) const;

  /// The node that operations act on: another one only where a work tree or revision stands at the mount's root.
  [[nodiscard]] virtual Attempt<NodePtr> target(const OperationPtr& op);
  /// The work tree that the node is in; fails with not_supported elsewhere.
  [[nodiscard]] virtual Attempt<std::shared_ptr<WorkTree>> work_tree(const OperationPtr& op);
  /// Its path in that work tree.
  [[nodiscard]] virtual std::optional<std::string> path_in_work() const { return std::nullopt; }

  [[nodiscard]] virtual Attempt<AttributesReply> attributes(const OperationPtr& op) = 0;
  /// The same for answers for which the kernel holds a lock, as it does on the directory of a lookup: without waiting
  /// for anything. What would have to be waited for is given for no time, so that the kernel asks for it where nothing
  /// is locked.
  [[nodiscard]] virtual Attempt<AttributesReply> attributes_at_once(const OperationPtr& op) { return attributes(op); }
  [[nodiscard]] virtual Attempt<AttributesReply> set_attributes(const OperationPtr& op, const SetAttributes& change);
  [[nodiscard]] virtual Attempt<std::string> read_link(const OperationPtr& op);
  [[nodiscard]] virtual Attempt<std::string> read(const OperationPtr& op, std::uint64_t offset, std::size_t size);
  [[nodiscard]] virtual Attempt<std::size_t> write(const OperationPtr& op, std::uint64_t offset,
                                                   const std::string& data);
  [[nodiscard]] virtual Attempt<void> sync(const OperationPtr& op);
  [[nodiscard]] virtual Attempt<void> allocate(const OperationPtr& op, int mode, std::uint64_t offset,
                                               std::uint64_t length);
  [[nodiscard]] virtual Attempt<std::uint64_t> seek(const OperationPtr& op, std::uint64_t offset, int whence);

  /// Called in each look-up that finds it: for what cannot be waited for elsewhere.
  [[nodiscard]] virtual Attempt<void> looked_up(const OperationPtr& op);

  // Directories.
  [[nodiscard]] virtual Attempt<Found> lookup(const OperationPtr& op, const std::string& name);
  /// Offers items from `offset` on until `emit` says no. The node goes along where the item has its entry filled in.
  /// May stop for something missing only before the first item.
  using Emit = std::function<bool(DirectoryItem& item, const NodePtr& node)>;
  [[nodiscard]] virtual Attempt<void> list(const OperationPtr& op, std::uint64_t offset, bool with_entries,
                                           const Emit& emit);
  [[nodiscard]] virtual Attempt<Found> make_node(const OperationPtr& op, const std::string& name, mode_t mode,
                                                 dev_t device);
  [[nodiscard]] virtual Attempt<Found> make_directory(const OperationPtr& op, const std::string& name, mode_t mode);
  [[nodiscard]] virtual Attempt<Found> make_symlink(const OperationPtr& op, const std::string& name,
                                                    const std::string& target);
  /// Gives `node` another name in this directory.
  [[nodiscard]] virtual Attempt<Found> link(const OperationPtr& op, const NodePtr& node, const std::string& name);
  [[nodiscard]] virtual Attempt<void> unlink(const OperationPtr& op, const std::string& name);
  [[nodiscard]] virtual Attempt<void> remove_directory(const OperationPtr& op, const std::string& name);
  [[nodiscard]] virtual Attempt<void> rename(const OperationPtr& op, const std::string& name, const NodePtr& new_parent,
                                             const std::string& new_name, unsigned flags);

  /// Of the attributes "user.playfs.…", by what follows.
  [[nodiscard]] virtual Attempt<std::optional<std::string>> xattr(const OperationPtr& op, const std::string& name);
  /// Of any attribute, by its whole name.
  [[nodiscard]] virtual Attempt<void> set_xattr(const OperationPtr& op, const std::string& name);
  [[nodiscard]] virtual Attempt<void> remove_xattr(const OperationPtr& op, const std::string& name);

  [[nodiscard]] const NodePtr& parent() const { return parent_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 protected:
  [[nodiscard]] Mount& mount() const { return mount_; }
  /// Why nothing can be changed here.
  [[nodiscard]] virtual Error refusal() const;
  /// "." and "..", from `offset` on, which are items 1 and 2 of every directory; false: no more fit.
  bool emit_dots(std::uint64_t offset, const Emit& emit) const;

 private:
  Mount& mount_;
  const NodePtr parent_;
  const std::string name_;
  const NodeId id_;
};

}  // namespace playfs::vfs
