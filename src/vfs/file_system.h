// The file system as plain values: every kernel operation, with no FUSE types.
//
// Nothing here blocks. An operation runs on what is in memory or on the local disk. Anything missing is fetched by the
// content module, and the operation then reruns from its beginning. Its Reply may be called before the operation
// returns or later, on another thread; never twice and never under a lock.
//
// Opens carry no state: there are no handles. A node is (path, content): when content changes other than through the
// kernel, the path gets a new node, and the old one keeps its bytes for those who have it open. This lets the kernel
// cache entries, attributes and pages indefinitely.
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

/// The process behind an operation, as reported by the kernel.
struct Caller {
  uid_t uid = 0;
  gid_t gid = 0;
  pid_t pid = 0;
  CancelToken cancel;  ///< cancelled by the kernel's INTERRUPT
};

struct NodeAttributes {
  std::uint64_t ino = 0;  ///< st_ino; stable per path
  mode_t mode = 0;        ///< type and permissions
  std::uint32_t links = 1;
  uid_t uid = 0;
  gid_t gid = 0;
  std::uint64_t size = 0;
  std::uint64_t blocks = 0;
  dev_t device = 0;  ///< device nodes only
  WallTime atime, mtime, ctime;
};

inline constexpr double kEndless = 1e9;  ///< seconds; valid until invalidated

/// The answer to a lookup. Each one adds a reference that forget() takes back, unless `node` is 0.
struct Entry {
  NodeId node = 0;  ///< 0: no such name; may be cached for `entry_timeout`
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
  std::uint64_t next_offset = 0;  ///< where a listing continues after this item
  Entry entry;                    ///< `node` is 0 in plain listings and for "." and ".."
};

struct SetAttributes {
  std::optional<mode_t> mode;
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;
  std::optional<std::uint64_t> size;
  std::optional<WallTime> atime, mtime;
};

/// A commit and its result, in publish's own types: nothing to translate on the way.
using publish::Cancelled;
using publish::CommitRequest;
using publish::CommitResult;
using publish::Outcome;
using publish::Phase;

/// What the STATUS ioctl reports about a work tree.
struct WorkStatus {
  std::string project;
  std::string base;             ///< empty: none yet
  std::string head;             ///< as last seen
  std::uint32_t staged = 0;     ///< paths
  std::uint32_t pending = 0;    ///< paths in the publication under way
  std::uint32_t conflicts = 0;  ///< paths that an update left in conflict
  Phase phase = Phase::idle;
  std::uint32_t chunks_done = 0;
  std::uint32_t chunks_total = 0;
  std::uint32_t retry_after_s = 0;
  std::uint32_t seconds_left = 0;  ///< 0: unknown
  std::uint64_t bytes_done = 0;    ///< of chunk text, during upload
  std::uint64_t bytes_total = 0;
  std::uint32_t queued = 0;  ///< commits waiting behind the running one

  /// The fields from `phase` to `bytes_total`.
  void set(const publish::Progress& progress) {
    phase = progress.phase;
    chunks_done = progress.so_far.chunks_done;
    chunks_total = progress.so_far.chunks_total;
    retry_after_s = progress.so_far.retry_after_s;
    seconds_left = progress.seconds_left.value_or(0);
    bytes_done = progress.bytes_done;
    bytes_total = progress.bytes_total;
  }
};

struct DiscardRequest {
  std::vector<std::string> paths;  ///< in the work tree, "" for its root; none: the path of the node called on
  bool dry_run = false;            ///< answer as usual, but change nothing
  std::uint64_t kept_in = 0;       ///< no checkpoint is made if this one has what is dropped
};

struct DiscardResult {
  std::uint32_t paths = 0;
  std::uint64_t checkpoint = 0;      ///< it has what was dropped; 0: nothing was
  std::vector<std::string> at = {};  ///< those paths of the request at or below which something was dropped
};

struct CheckpointRequest {
  std::string message;
  std::uint64_t drop = 0;  ///< drop this one instead
};

struct CheckpointResult {
  std::uint64_t id = 0;  ///< 0: nothing was staged
  std::uint64_t paths = 0;
};

struct RestoreRequest {
  std::uint64_t id = 0;
  std::vector<std::string> paths;  ///< in the work tree; none: all of it
};

struct RestoreResult {
  std::uint32_t paths = 0;      ///< what differed from the checkpoint
  std::uint64_t before = 0;     ///< the checkpoint of what was staged before; 0: nothing was
  std::uint32_t conflicts = 0;  ///< paths
  std::string base_then;        ///< what the checkpoint was staged on...
  std::string base_now;         ///< ...and is staged on now
};

struct UpdateResult {
  std::string base;             ///< the new base
  std::uint32_t conflicts = 0;  ///< paths
};

struct FileSystemStatus {
  std::uint64_t block_size = 4096, blocks = 0, blocks_free = 0, blocks_available = 0, files = 0, files_free = 0;
};

template <class T>
using Reply = Callback<T>;

/// Invalidates the kernel's caches. Called on dedicated threads, after the state has changed.
class KernelNotifier {
 public:
  virtual ~KernelNotifier() = default;
  virtual void entry_changed(NodeId parent, const std::string& name) = 0;
  /// Makes the kernel revalidate every name of the mount at its next use. Never blocks, unlike the others. Returns
  /// false if the kernel does not support it.
  [[nodiscard]] virtual bool all_names_changed() { return false; }
  /// Attributes, and pages from `offset` on; attributes only if `offset` is negative.
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
  /// Creates a regular file, fifo, socket or device, by the type bits of `mode`. The umask is already applied to every
  /// mode.
  virtual void make_node(const Caller&, NodeId parent, std::string_view name, mode_t mode, dev_t device,
                         Reply<Entry>) = 0;
  virtual void make_directory(const Caller&, NodeId parent, std::string_view name, mode_t mode, Reply<Entry>) = 0;
  virtual void make_symlink(const Caller&, NodeId parent, std::string_view name, std::string_view target,
                            Reply<Entry>) = 0;
  virtual void link(const Caller&, NodeId, NodeId new_parent, std::string_view new_name, Reply<Entry>) = 0;
  virtual void unlink(const Caller&, NodeId parent, std::string_view name, Reply<void>) = 0;
  virtual void remove_directory(const Caller&, NodeId parent, std::string_view name, Reply<void>) = 0;
  /// `flags` as in renameat2(2).
  virtual void rename(const Caller&, NodeId parent, std::string_view name, NodeId new_parent, std::string_view new_name,
                      unsigned flags, Reply<void>) = 0;
  virtual void read(const Caller&, NodeId, std::uint64_t offset, std::size_t size, Reply<std::string>) = 0;
  virtual void write(const Caller&, NodeId, std::uint64_t offset, std::string data, Reply<std::size_t>) = 0;
  /// A write-back was refused, so from `offset` on the kernel's pages hold bytes that the file does not have, visible
  /// to every reader. Has the kernel drop them.
  virtual void drop_pages(NodeId, std::uint64_t offset) = 0;
  virtual void sync(const Caller&, NodeId, Reply<void>) = 0;
  virtual void allocate(const Caller&, NodeId, int mode, std::uint64_t offset, std::uint64_t length, Reply<void>) = 0;
  virtual void seek(const Caller&, NodeId, std::uint64_t offset, int whence, Reply<std::uint64_t>) = 0;
  /// Emits items from `offset` on (0: the beginning) until `room` returns false. With `with_entries` each accepted
  /// item's entry counts as a lookup.
  using Room = std::function<bool(const DirectoryItem&)>;
  virtual void list(const Caller&, NodeId, std::uint64_t offset, bool with_entries, Room room, Reply<void>) = 0;
  virtual void status(const Caller&, NodeId, Reply<FileSystemStatus>) = 0;
  /// Attributes can be read by name but are not listed, since copy tools could not set them on the copy.
  virtual void get_xattr(const Caller&, NodeId, std::string_view name, Reply<std::string>) = 0;
  virtual void set_xattr(const Caller&, NodeId, std::string_view name, std::string_view value, Reply<void>) = 0;
  virtual void remove_xattr(const Caller&, NodeId, std::string_view name, Reply<void>) = 0;

  // The ioctls of include/playfs/ioctl.h, on any node inside a work tree; elsewhere they fail with `not_supported`
  // (ENOTTY). All need write permission on the work tree's root.
  /// An empty agent means the mount's default. Without `wait`, answers as soon as the change is frozen.
  virtual void commit(const Caller&, NodeId, CommitRequest, Reply<CommitResult>) = 0;
  virtual void work_status(const Caller&, NodeId, Reply<WorkStatus>) = 0;
  /// Drops what is staged at and below a path, after keeping it in a checkpoint.
  virtual void discard(const Caller&, NodeId, DiscardRequest, Reply<DiscardResult>) = 0;
  /// Keeps what is staged, for a restore.
  virtual void checkpoint(const Caller&, NodeId, CheckpointRequest, Reply<CheckpointResult>) = 0;
  virtual void restore(const Caller&, NodeId, RestoreRequest, Reply<RestoreResult>) = 0;
  /// Updates to head, or merges `revision` if one is given.
  virtual void update(const Caller&, NodeId, RevisionId revision, Reply<UpdateResult>) = 0;
  /// Returns the publication under way to the stage, as far as it has not been sent.
  virtual void cancel(const Caller&, NodeId, Reply<Cancelled>) = 0;
};

}  // namespace playfs::vfs
