// The file system as plain values: every operation of the kernel's, without a word of FUSE.
//
// Nothing here blocks. An operation tries with what is in memory or on the local disk; what is missing is named,
// fetched by the content room, and the operation is tried again from its beginning when it has arrived. Its Reply
// may therefore be called before the operation returns, or later on another thread; never twice, never under a lock.
//
// Opens carry no state: there are no handles. A node is (path, content): when the content behind a path changes by
// somebody else's doing, the path gets a new node, and the old one keeps its bytes for those who still have it open.
// That is what lets the kernel keep entries, attributes and pages without end.
//
// Thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/callback.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "publish/publisher.h"

namespace playfs::vfs {

using NodeId = std::uint64_t;
inline constexpr NodeId kRootNode = 1;

/// The caller of an operation, as the kernel names it.
struct Caller {
  uid_t uid = 0;
  gid_t gid = 0;
  pid_t pid = 0;
  CancelToken cancel;  ///< the kernel's INTERRUPT
};

struct NodeAttributes {
  std::uint64_t ino = 0;  ///< what stat shows; stable per path
  mode_t mode = 0;        ///< type and permissions
  std::uint32_t links = 1;
  uid_t uid = 0;
  gid_t gid = 0;
  std::uint64_t size = 0;
  std::uint64_t blocks = 0;
  dev_t device = 0;  ///< of a device node
  WallTime atime, mtime, ctime;
};

inline constexpr double kEndless = 1e9;  ///< seconds: until it is invalidated

/// The answer to a lookup. Each one counts as a reference that forget() takes back, unless `node` is 0.
struct Entry {
  NodeId node = 0;  ///< 0: there is no such name, which may be cached for `entry_timeout`
  NodeAttributes attributes;
  double entry_timeout = 0;  ///< seconds
  double attributes_timeout = 0;
};

struct AttributesReply {
  NodeAttributes attributes;
  double timeout = 0;
};

struct DirectoryItem {
  std::string name;
  std::uint64_t next_offset = 0;  ///< where a listing goes on after this item
  Entry entry;                    ///< `node` 0 in plain listings, for "." and ".."
};

struct SetAttributes {
  std::optional<mode_t> mode;
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;
  std::optional<std::uint64_t> size;
  std::optional<WallTime> atime, mtime;
};

/// A commit, and how it went: publish's own words, so that nothing has to be translated on the way.
using publish::Cancelled;
using publish::CommitRequest;
using publish::CommitResult;
using publish::Outcome;
using publish::Phase;

/// What the STATUS ioctl tells of a work tree.
struct WorkStatus {
  std::string project;
  std::string base;             ///< empty: none yet
  std::string head;             ///< as last seen
  std::uint32_t staged = 0;     ///< paths
  std::uint32_t pending = 0;    ///< paths of a publication under way
  std::uint32_t conflicts = 0;  ///< paths that an update left in conflict
  Phase phase = Phase::idle;
  std::uint32_t chunks_done = 0;
  std::uint32_t chunks_total = 0;
  std::uint32_t retry_after_s = 0;
  std::uint32_t seconds_left = 0;  ///< 0: unknown
  std::uint64_t bytes_done = 0;    ///< of the chunks' text, while it is uploaded
  std::uint64_t bytes_total = 0;
  std::uint32_t queued = 0;  ///< commits behind the one under way
};

struct DiscardRequest {
  std::optional<std::string> path;  ///< in the work tree, "" for its root; nullopt: that of the node that is asked
  bool dry_run = false;             ///< change nothing, and answer as if
};

struct UpdateResult {
  std::string base;             ///< the new one
  std::uint32_t conflicts = 0;  ///< paths
};

struct FileSystemStatus {
  std::uint64_t block_size = 4096, blocks = 0, blocks_free = 0, blocks_available = 0, files = 0, files_free = 0;
};

template <class T>
using Reply = Callback<T>;

/// What the kernel must be told: delivered by a thread of its own, after the state has changed.
class KernelNotifier {
 public:
  virtual ~KernelNotifier() = default;
  virtual void entry_changed(NodeId parent, const std::string& name) = 0;
  /// All names of the mount are to be asked for again when they are next used. Never blocks, where the others may;
  /// false where the kernel knows no such word.
  [[nodiscard]] virtual bool all_names_changed() { return false; }
  /// Attributes, and pages from `offset` on; a negative offset: attributes alone.
  virtual void node_changed(NodeId node, std::int64_t offset) = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual void lookup(const Caller&, NodeId parent, std::string_view name, Reply<Entry>) = 0;
  virtual void forget(NodeId, std::uint64_t count) = 0;
  virtual void get_attributes(const Caller&, NodeId, Reply<AttributesReply>) = 0;
  virtual void set_attributes(const Caller&, NodeId, const SetAttributes&, Reply<AttributesReply>) = 0;
  virtual void read_link(const Caller&, NodeId, Reply<std::string>) = 0;
  /// Regular files, fifos, sockets and devices by the type bits of `mode`. In all modes the umask has been applied
  /// already.
  virtual void make_node(const Caller&, NodeId parent, std::string_view name, mode_t mode, dev_t device,
                         Reply<Entry>) = 0;
  virtual void make_directory(const Caller&, NodeId parent, std::string_view name, mode_t mode, Reply<Entry>) = 0;
  virtual void make_symlink(const Caller&, NodeId parent, std::string_view name, std::string_view target,
                            Reply<Entry>) = 0;
  virtual void link(const Caller&, NodeId, NodeId new_parent, std::string_view new_name, Reply<Entry>) = 0;
  virtual void unlink(const Caller&, NodeId parent, std::string_view name, Reply<void>) = 0;
  virtual void remove_directory(const Caller&, NodeId parent, std::string_view name, Reply<void>) = 0;
  /// `flags` as renameat2(2).
  virtual void rename(const Caller&, NodeId parent, std::string_view name, NodeId new_parent, std::string_view new_name,
                      unsigned flags, Reply<void>) = 0;
  virtual void read(const Caller&, NodeId, std::uint64_t offset, std::size_t size, Reply<std::string>) = 0;
  virtual void write(const Caller&, NodeId, std::uint64_t offset, std::string data, Reply<std::size_t>) = 0;
  /// A write that came out of the kernel's pages was refused: they hold from `offset` on what this file does not, for
  /// everybody to read. The kernel will be told to drop them.
  virtual void drop_pages(NodeId, std::uint64_t offset) = 0;
  virtual void sync(const Caller&, NodeId, Reply<void>) = 0;
  virtual void allocate(const Caller&, NodeId, int mode, std::uint64_t offset, std::uint64_t length, Reply<void>) = 0;
  virtual void seek(const Caller&, NodeId, std::uint64_t offset, int whence, Reply<std::uint64_t>) = 0;
  /// Items from `offset` on (0: the beginning) until `room` says that no more fit. With `with_entries` each item's
  /// entry counts as a lookup; items that `room` turned away do not.
  using Room = std::function<bool(const DirectoryItem&)>;
  virtual void list(const Caller&, NodeId, std::uint64_t offset, bool with_entries, Room room, Reply<void>) = 0;
  virtual void status(const Caller&, NodeId, Reply<FileSystemStatus>) = 0;
  /// Attributes are read by name and never listed: no program that copies a file could give its copy the same.
  virtual void get_xattr(const Caller&, NodeId, std::string_view name, Reply<std::string>) = 0;
  virtual void set_xattr(const Caller&, NodeId, std::string_view name, std::string_view value, Reply<void>) = 0;
  virtual void remove_xattr(const Caller&, NodeId, std::string_view name, Reply<void>) = 0;

  // The ioctls of include/playfs/ioctl.h, on any node inside a work tree; elsewhere they fail with `not_supported`
  // (ENOTTY). All need write permission on the work tree's root.
  /// An empty agent is the mount's default. Without `wait` answered as soon as the change is frozen.
  virtual void commit(const Caller&, NodeId, CommitRequest, Reply<CommitResult>) = 0;
  virtual void work_status(const Caller&, NodeId, Reply<WorkStatus>) = 0;
  /// Drops what is staged at and below a path; answers how many paths that were.
  virtual void discard(const Caller&, NodeId, DiscardRequest, Reply<std::uint32_t>) = 0;
  /// To head, or, where a revision is named, takes that one in.
  virtual void update(const Caller&, NodeId, RevisionId revision, Reply<UpdateResult>) = 0;
  /// Gives back what is being published, as far as it was not sent.
  virtual void cancel(const Caller&, NodeId, Reply<Cancelled>) = 0;
};

}  // namespace playfs::vfs
