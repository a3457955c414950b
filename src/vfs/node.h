// A node: what the kernel calls an inode. The base of all kinds; its defaults refuse whatever a kind does not support.
//
// Every method is an attempt (attempt.h): it answers from what is available or says what is missing. Nodes are kept
// alive by the kernel's references (node_table.h), by their children, and by running operations; the mount outlives
// them all. Thread-safe: several operations may run on one node at once.
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

/// The directory of the mount's own files, at its root.
inline constexpr const char* kOwnDirectory = ".playfs";

/// The prefix of extended attributes that playfs provides; read-only everywhere.
inline constexpr std::string_view kXattrPrefix = "user.playfs.";

/// The result of a lookup (an empty `node` if there is no such name), and how long the kernel may cache it.
struct LookupResult {
  NodePtr node;
  AttributesReply attributes;
  double entry_timeout = 0;
};

/// Stands for a size that is not known yet. Programs never see it: its timeout is 0, so the kernel asks again before it
/// opens the file or shows the attributes. Should replies cross anyway, no write can succeed behind an end that large.
inline constexpr std::uint64_t kUnknownSize = std::uint64_t{1} << 62;

class Node : public std::enable_shared_from_this<Node> {
 public:
  /// `parent` is empty for the root.
  Node(Mount& mount, NodePtr parent, std::string name);
  /// The same with a given id.
  Node(Mount& mount, NodePtr parent, std::string name, NodeId id);
  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// The kernel's id for the node: unique for as long as the object lives.
  [[nodiscard]] NodeId id() const { return id_; }
  /// The inode number that stat shows.
  [[nodiscard]] virtual std::uint64_t ino() const;
  /// Relative to the mount's root, for messages.
  [[nodiscard]] virtual std::string path() const;
  [[nodiscard]] std::string path_below(const std::string& name) const;

  /// The node that operations act on. Differs from this one only for the root of a replaceable tree (TreeRoot) and for
  /// names still being fetched (LateNode).
  [[nodiscard]] virtual Attempt<NodePtr> target(const OperationPtr& op);
  /// Whether the kernel knows this node only until the real one takes over its id.
  [[nodiscard]] virtual bool is_stand_in() const { return false; }
  /// The work tree that contains the node; elsewhere fails with not_supported.
  [[nodiscard]] virtual Attempt<std::shared_ptr<WorkTree>> work_tree(const OperationPtr& op);
  /// The node's path in that work tree.
  [[nodiscard]] virtual std::optional<std::string> path_in_work() const { return std::nullopt; }

  [[nodiscard]] virtual Attempt<AttributesReply> attributes(const OperationPtr& op) = 0;
  /// Like attributes(), for replies during which the kernel holds a lock, such as the directory's during a lookup:
  /// never waits. Whatever would have to be waited for gets a timeout of 0, so the kernel asks for it later, without a
  /// lock.
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

  /// Called when a list has changed from which this directory's listing was derived. On any thread; must not block.
  virtual void listed_anew() {}

  /// Called by every lookup that finds the node: for waits that are possible nowhere else.
  [[nodiscard]] virtual Attempt<void> looked_up(const OperationPtr& op);

  // Directories.
  [[nodiscard]] virtual Attempt<LookupResult> lookup(const OperationPtr& op, const std::string& name);
  /// Offers items from `offset` on until `emit` returns false. Passes the node along if the item's entry is filled in.
  /// May stop for something missing only before the first item.
  using Emit = std::function<bool(DirectoryItem& item, const NodePtr& node)>;
  [[nodiscard]] virtual Attempt<void> list(const OperationPtr& op, std::uint64_t offset, bool with_entries,
                                           const Emit& emit);
  [[nodiscard]] virtual Attempt<LookupResult> make_node(const OperationPtr& op, const std::string& name, mode_t mode,
                                                        dev_t device);
  [[nodiscard]] virtual Attempt<LookupResult> make_directory(const OperationPtr& op, const std::string& name,
                                                             mode_t mode);
  [[nodiscard]] virtual Attempt<LookupResult> make_symlink(const OperationPtr& op, const std::string& name,
                                                           const std::string& target);
  /// Adds another name for `node` in this directory.
  [[nodiscard]] virtual Attempt<LookupResult> link(const OperationPtr& op, const NodePtr& node,
                                                   const std::string& name);
  [[nodiscard]] virtual Attempt<void> unlink(const OperationPtr& op, const std::string& name);
  [[nodiscard]] virtual Attempt<void> remove_directory(const OperationPtr& op, const std::string& name);
  [[nodiscard]] virtual Attempt<void> rename(const OperationPtr& op, const std::string& name, const NodePtr& new_parent,
                                             const std::string& new_name, unsigned flags);

  /// The attribute "user.playfs.NAME"; `name` is the part after the prefix.
  [[nodiscard]] virtual Attempt<std::optional<std::string>> xattr(const OperationPtr& op, const std::string& name);
  /// For any attribute, by its full name.
  [[nodiscard]] virtual Attempt<void> set_xattr(const OperationPtr& op, const std::string& name);
  [[nodiscard]] virtual Attempt<void> remove_xattr(const OperationPtr& op, const std::string& name);

  [[nodiscard]] const NodePtr& parent() const { return parent_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 protected:
  [[nodiscard]] Mount& mount() const { return mount_; }
  /// The id of a new node for this name.
  [[nodiscard]] virtual NodeId id_for(const std::string& name);
  /// Called when a node of that name has been released.
  virtual void released(const std::string&, NodeId) {}
  /// Why nothing can be changed here.
  [[nodiscard]] virtual Error refusal() const;
  /// Fails with the refusal; one that is EPERM is logged with its reason.
  [[nodiscard]] tl::unexpected<NoValue> refused(const OperationPtr& op) const;
  /// Emits "." and "..", items 1 and 2 of every directory, from `offset` on; false if no more fit.
  bool emit_dots(std::uint64_t offset, const Emit& emit) const;

 private:
  Mount& mount_;
  const NodePtr parent_;
  const std::string name_;
  const NodeId id_;
};

}  // namespace playfs::vfs
