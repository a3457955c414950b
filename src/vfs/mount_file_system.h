// The whole mount as a FileSystem, as passed to `fuse/`. See README.md for its parts.
//
// Sends no request until the kernel does, or resume() finds something. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/random.h"
#include "content/site.h"
#include "vfs/file_system.h"

namespace playfs::vfs {

struct FileSystemOptions {
  std::string state_directory;  ///< private; holds this service's stages and journals
  std::string mount_source;     ///< SRC as mounted, for .playfs/status.json
  std::string version;          ///< of the program
  std::string agent;            ///< author of commits and posts that name none
  std::string agent_from;       ///< where that is from, for .playfs/status.json
  bool read_only = false;
  bool safe_symlinks = false;                             ///< refuse links that leave their tree
  Instructions instructions = Instructions::hide_others;  ///< which files that give instructions to agents are shown
  uid_t uid = 0;                                          ///< shown as the owner
  gid_t gid = 0;
  mode_t umask = 022;                         ///< removed from default modes
  std::chrono::milliseconds refresh{10'000};  ///< how long the kernel may cache what others may change
  std::optional<ProjectId> project;           ///< mount only its work tree
  /// Mount only this revision, read-only; for a LoneWorkTree, what a new stage is based on. REQUIRES: project
  std::optional<RevisionId> revision;
  bool follows_head = true;  ///< work trees with nothing staged move to a new head by themselves
  std::function<Status(const std::vector<publish::QueuedCommit>&)> may_go_on = {};  ///< see publish::PublisherOptions
};

class CloseWatcher;
class Mount;

class MountFileSystem final : public FileSystem {
 public:
  /// All references must outlive it; the executor must still run when it is destroyed.
  MountFileSystem(content::Site& site, const Clock& clock, Executor& executor, Random& random,
                  FileSystemOptions options);
  /// Answers waiting operations with `interrupted`; publications under way stop, journalled.
  ~MountFileSystem() override;

  /// The longest that an operation may wait, since the kernel limits the time of requests. Call before serving the
  /// mount.
  void set_request_limit(std::chrono::milliseconds limit);
  /// Pass nullptr before the session that the notifier belongs to ends.
  void set_notifier(KernelNotifier* notifier);
  /// Pass nullptr before the session that the watcher belongs to ends.
  void set_close_watcher(std::shared_ptr<CloseWatcher> watcher);
  /// Resumes publications and requests that an earlier mount left behind, in the background.
  void resume();

  void lookup(const Caller&, NodeId parent, std::string_view name, Reply<Entry>) override;
  void forget(NodeId, std::uint64_t count) override;
  void get_attributes(const Caller&, NodeId, Reply<AttributesReply>) override;
  void set_attributes(const Caller&, NodeId, const SetAttributes&, Reply<AttributesReply>) override;
  void read_link(const Caller&, NodeId, Reply<std::string>) override;
  void make_node(const Caller&, NodeId parent, std::string_view name, mode_t mode, dev_t device, Reply<Entry>) override;
  void make_directory(const Caller&, NodeId parent, std::string_view name, mode_t mode, Reply<Entry>) override;
  void make_symlink(const Caller&, NodeId parent, std::string_view name, std::string_view target,
                    Reply<Entry>) override;
  void link(const Caller&, NodeId, NodeId new_parent, std::string_view new_name, Reply<Entry>) override;
  void unlink(const Caller&, NodeId parent, std::string_view name, Reply<void>) override;
  void remove_directory(const Caller&, NodeId parent, std::string_view name, Reply<void>) override;
  void rename(const Caller&, NodeId parent, std::string_view name, NodeId new_parent, std::string_view new_name,
              unsigned flags, Reply<void>) override;
  void read(const Caller&, NodeId, std::uint64_t offset, std::size_t size, Reply<std::string>) override;
  void write(const Caller&, NodeId, std::uint64_t offset, std::string data, Reply<std::size_t>) override;
  void drop_pages(NodeId, std::uint64_t offset) override;
  void sync(const Caller&, NodeId, Reply<void>) override;
  void allocate(const Caller&, NodeId, int mode, std::uint64_t offset, std::uint64_t length, Reply<void>) override;
  void seek(const Caller&, NodeId, std::uint64_t offset, int whence, Reply<std::uint64_t>) override;
  void list(const Caller&, NodeId, std::uint64_t offset, bool with_entries, Room room, Reply<void>) override;
  void status(const Caller&, NodeId, Reply<FileSystemStatus>) override;
  void get_xattr(const Caller&, NodeId, std::string_view name, Reply<std::string>) override;
  void set_xattr(const Caller&, NodeId, std::string_view name, std::string_view value, Reply<void>) override;
  void remove_xattr(const Caller&, NodeId, std::string_view name, Reply<void>) override;
  void commit(const Caller&, NodeId, CommitRequest, Reply<CommitResult>) override;
  void work_status(const Caller&, NodeId, Reply<WorkStatus>) override;
  void discard(const Caller&, NodeId, DiscardRequest, Reply<DiscardResult>) override;
  void checkpoint(const Caller&, NodeId, CheckpointRequest, Reply<CheckpointResult>) override;
  void restore(const Caller&, NodeId, RestoreRequest, Reply<RestoreResult>) override;
  void cancel(const Caller&, NodeId, Reply<Cancelled>) override;
  void update(const Caller&, NodeId, RevisionId revision, Reply<UpdateResult>) override;

 private:
  std::unique_ptr<Mount> mount_;
};

}  // namespace playfs::vfs
