#include "vfs/mount_file_system.h"

#include <sys/statvfs.h>

#include "vfs/attempt_driver.h"
#include "vfs/control/requests_under_way.h"
#include "vfs/control/resumed_requests.h"
#include "vfs/directories/root.h"
#include "vfs/mount.h"
#include "vfs/work/work_tree.h"
#include "vfs/work/work_trees.h"

namespace playfs::vfs {
namespace {

Error stale_node() { return {ErrorCode::not_found, "the kernel requested a node that it has forgotten"}; }

/// The node itself, as the kernel named it.
Attempt<NodePtr> node_of(Mount& mount, NodeId id) {
  NodePtr node = mount.nodes().find(id);
  if (!node) return fail(stale_node());
  return node;
}

/// The node that operations act on.
Attempt<NodePtr> target_of(Mount& mount, const OperationPtr& op, NodeId id) {
  PLAYFS_ATTEMPT(NodePtr node, node_of(mount, id));
  return node->target(op);
}

Attempt<std::shared_ptr<WorkTree>> work_tree_of(Mount& mount, const OperationPtr& op, NodeId id) {
  PLAYFS_ATTEMPT(NodePtr node, node_of(mount, id));
  return node->work_tree(op);
}

Entry entry_of(Mount& mount, const LookupResult& found) {
  Entry entry;
  entry.entry_timeout = found.entry_timeout;
  if (!found.node) return entry;
  entry.node = found.node->id();
  entry.attributes = found.attributes.attributes;
  entry.attributes_timeout = found.attributes.timeout;
  mount.nodes().refer(found.node);
  return entry;
}

/// What the kernel keeps locked on `nodes` until the operation is answered.
Locked locked_for(Counted operation, std::vector<NodeId> nodes) {
  switch (operation) {
    case Counted::forget:
    case Counted::get_attributes:
    case Counted::seek:
    case Counted::status:
    case Counted::get_xattr:
    case Counted::commit:
    case Counted::work_status:
    case Counted::discard:
    case Counted::update:
    case Counted::cancel:
    case Counted::checkpoint:
    case Counted::restore: return {};
    case Counted::read_link:
    case Counted::read:
    case Counted::write:
    case Counted::allocate: return {std::move(nodes), false, true};
    case Counted::set_attributes:
    case Counted::sync: return {std::move(nodes), true, true};
    case Counted::lookup:
    case Counted::make_node:
    case Counted::make_directory:
    case Counted::make_symlink:
    case Counted::link:
    case Counted::unlink:
    case Counted::remove_directory:
    case Counted::rename:
    case Counted::list:
    case Counted::set_xattr:
    case Counted::remove_xattr: return {std::move(nodes), true, false};
  }
  return {};
}

/// Whether the kernel sends such requests while it resolves a path. Any other one shows that the path is resolved.
bool is_of_path_lookup(Counted counted) {
  return counted == Counted::lookup || counted == Counted::get_attributes || counted == Counted::read_link;
}

OperationPtr operation(Mount& mount, Counted counted, const Caller& caller, std::vector<NodeId> nodes) {
  auto op = std::make_shared<Operation>(caller, locked_for(counted, std::move(nodes)), counted == Counted::lookup,
                                        mount.request_limit(), mount.sent_back().left(caller.pid));
  op->named = mount.names_used().of(caller.pid);
  if (op->named && !is_of_path_lookup(counted)) mount.names_used().forget(caller.pid);
  return op;
}

/// A thread that was sent back stays remembered, however long it waits for this answer.
template <class T>
Reply<T> still_on_the_way(Mount& mount, const Operation& op, Reply<T> reply) {
  if (!op.sent_back) return reply;
  return [&mount, thread = op.caller.pid, left = *op.sent_back, reply = std::move(reply)](Result<T> result) mutable {
    mount.sent_back().keep(thread, left);
    reply(std::move(result));
  };
}

template <class T, class F>
void run(Mount& mount, Counted counted, const Caller& caller, NodeId node, F attempt, Reply<T> reply) {
  mount.metrics().count(counted);
  if (!is_of_path_lookup(counted)) mount.sent_back().forget(caller.pid);
  auto subject = [&mount, node] {
    NodePtr found = mount.nodes().find(node);
    return found ? found->path() : std::string();
  };
  auto op = operation(mount, counted, caller, {node});
  reply = still_on_the_way(mount, *op, std::move(reply));
  drive<T>(mount, counted, std::move(op), std::move(attempt), std::move(subject), std::move(reply));
}

/// The same for an operation on a name in the node. `second`: the other directory involved, if any.
template <class T, class F>
void run_below(Mount& mount, Counted counted, const Caller& caller, NodeId node, const std::string& name, F attempt,
               Reply<T> reply, std::optional<NodeId> second = std::nullopt) {
  mount.metrics().count(counted);
  if (!is_of_path_lookup(counted)) mount.sent_back().forget(caller.pid);
  auto subject = [&mount, node, name] {
    NodePtr found = mount.nodes().find(node);
    return found ? found->path_below(name) : name;
  };
  std::vector<NodeId> nodes = {node};
  if (second && *second != node) nodes.push_back(*second);
  auto op = operation(mount, counted, caller, std::move(nodes));
  reply = still_on_the_way(mount, *op, std::move(reply));
  drive<T>(mount, counted, std::move(op), std::move(attempt), std::move(subject), std::move(reply));
}

/// For ioctls: records every failure's reason, including user errors.
template <class T, class F>
void run_ioctl(Mount& mount, Counted counted, const Caller& caller, NodeId node, F attempt, Reply<T> reply) {
  auto record = [&mount, node, reply = std::move(reply)](Result<T> result) mutable {
    if (!result && !traits_of(result.error().code).recorded) {
      NodePtr found = mount.nodes().find(node);
      mount.site().events().error(found ? found->path() : std::string(), result.error());
    }
    reply(std::move(result));
  };
  run<T>(mount, counted, caller, node, std::move(attempt), Reply<T>(std::move(record)));
}

}  // namespace

MountFileSystem::MountFileSystem(content::Site& site, const Clock& clock, Executor& executor, Random& random,
                                 FileSystemOptions options)
    : mount_(std::make_unique<Mount>(site, clock, executor, random, std::move(options))) {
  mount_->start_threads();
  mount_->nodes().set_root(make_root(*mount_));
}

MountFileSystem::~MountFileSystem() = default;

void MountFileSystem::set_notifier(KernelNotifier* notifier) { mount_->notifications().set_receiver(notifier); }

void MountFileSystem::set_request_limit(std::chrono::milliseconds limit) { mount_->set_request_limit(limit); }

void MountFileSystem::set_close_watcher(std::shared_ptr<CloseWatcher> watcher) {
  mount_->requests().set_watcher(std::move(watcher));
}

void MountFileSystem::resume() {
  mount_->works().resume();
  if (mount_->options().read_only) return;
  mount_->disk().post(Gate::guard(mount_->gate(), [mount = mount_.get()] { mount->resumed().find(); }));
}

void MountFileSystem::lookup(const Caller& caller, NodeId parent, std::string_view name, Reply<Entry> reply) {
  auto attempt = [mount = mount_.get(), parent, name = std::string(name)](const OperationPtr& op) -> Attempt<Entry> {
    PLAYFS_ATTEMPT(NodePtr node, node_of(*mount, parent));
    PLAYFS_ATTEMPT(LookupResult found, node->lookup(op, name));
    if (found.node && op->may_be_second) mount->sent_back().found(op->caller.pid, found.node->id());
    return entry_of(*mount, found);
  };
  run_below<Entry>(*mount_, Counted::lookup, caller, parent, std::string(name), std::move(attempt), std::move(reply));
}

void MountFileSystem::forget(NodeId node, std::uint64_t count) {
  mount_->metrics().count(Counted::forget);
  if (mount_->nodes().forget(node, count)) mount_->spare_memory().let_go();
}

void MountFileSystem::get_attributes(const Caller& caller, NodeId id, Reply<AttributesReply> reply) {
  auto attempt = [mount = mount_.get(), id](const OperationPtr& op) -> Attempt<AttributesReply> {
    PLAYFS_ATTEMPT(NodePtr node, node_of(*mount, id));
    return node->attributes(op);
  };
  run<AttributesReply>(*mount_, Counted::get_attributes, caller, id, std::move(attempt), std::move(reply));
}

void MountFileSystem::set_attributes(const Caller& caller, NodeId id, const SetAttributes& change,
                                     Reply<AttributesReply> reply) {
  auto attempt = [mount = mount_.get(), id, change](const OperationPtr& op) -> Attempt<AttributesReply> {
    PLAYFS_ATTEMPT(NodePtr node, target_of(*mount, op, id));
    return node->set_attributes(op, change);
  };
  run<AttributesReply>(*mount_, Counted::set_attributes, caller, id, std::move(attempt), std::move(reply));
}

void MountFileSystem::read_link(const Caller& caller, NodeId id, Reply<std::string> reply) {
  auto attempt = [mount = mount_.get(), id](const OperationPtr& op) -> Attempt<std::string> {
    PLAYFS_ATTEMPT(NodePtr node, node_of(*mount, id));
    return node->read_link(op);
  };
  run<std::string>(*mount_, Counted::read_link, caller, id, std::move(attempt), std::move(reply));
}

void MountFileSystem::make_node(const Caller& caller, NodeId parent, std::string_view name, mode_t mode, dev_t device,
                                Reply<Entry> reply) {
  auto attempt = [mount = mount_.get(), parent, name = std::string(name), mode,
                  device](const OperationPtr& op) -> Attempt<Entry> {
    PLAYFS_ATTEMPT(NodePtr node, target_of(*mount, op, parent));
    PLAYFS_ATTEMPT(LookupResult found, node->make_node(op, name, mode, device));
    return entry_of(*mount, found);
  };
  run_below<Entry>(*mount_, Counted::make_node, caller, parent, std::string(name), std::move(attempt),
                   std::move(reply));
}

void MountFileSystem::make_directory(const Caller& caller, NodeId parent, std::string_view name, mode_t mode,
                                     Reply<Entry> reply) {
  auto attempt = [mount = mount_.get(), parent, name = std::string(name),
                  mode](const OperationPtr& op) -> Attempt<Entry> {
    PLAYFS_ATTEMPT(NodePtr node, target_of(*mount, op, parent));
    PLAYFS_ATTEMPT(LookupResult found, node->make_directory(op, name, mode));
    return entry_of(*mount, found);
  };
  run_below<Entry>(*mount_, Counted::make_directory, caller, parent, std::string(name), std::move(attempt),
                   std::move(reply));
}

void MountFileSystem::make_symlink(const Caller& caller, NodeId parent, std::string_view name, std::string_view target,
                                   Reply<Entry> reply) {
  auto attempt = [mount = mount_.get(), parent, name = std::string(name),
                  target = std::string(target)](const OperationPtr& op) -> Attempt<Entry> {
    PLAYFS_ATTEMPT(NodePtr node, target_of(*mount, op, parent));
    PLAYFS_ATTEMPT(LookupResult found, node->make_symlink(op, name, target));
    return entry_of(*mount, found);
  };
  run_below<Entry>(*mount_, Counted::make_symlink, caller, parent, std::string(name), std::move(attempt),
                   std::move(reply));
}

void MountFileSystem::link(const Caller& caller, NodeId id, NodeId new_parent, std::string_view new_name,
                           Reply<Entry> reply) {
  auto attempt = [mount = mount_.get(), id, new_parent,
                  name = std::string(new_name)](const OperationPtr& op) -> Attempt<Entry> {
    PLAYFS_ATTEMPT(NodePtr node, target_of(*mount, op, id));
    PLAYFS_ATTEMPT(NodePtr directory, target_of(*mount, op, new_parent));
    PLAYFS_ATTEMPT(LookupResult found, directory->link(op, node, name));
    return entry_of(*mount, found);
  };
  run_below<Entry>(*mount_, Counted::link, caller, new_parent, std::string(new_name), std::move(attempt),
                   std::move(reply));
}

void MountFileSystem::unlink(const Caller& caller, NodeId parent, std::string_view name, Reply<void> reply) {
  auto attempt = [mount = mount_.get(), parent, name = std::string(name)](const OperationPtr& op) -> Attempt<void> {
    PLAYFS_ATTEMPT(NodePtr node, target_of(*mount, op, parent));
    return node->unlink(op, name);
  };
  run_below<void>(*mount_, Counted::unlink, caller, parent, std::string(name), std::move(attempt), std::move(reply));
}

void MountFileSystem::remove_directory(const Caller& caller, NodeId parent, std::string_view name, Reply<void> reply) {
  auto attempt = [mount = mount_.get(), parent, name = std::string(name)](const OperationPtr& op) -> Attempt<void> {
    PLAYFS_ATTEMPT(NodePtr node, target_of(*mount, op, parent));
    return node->remove_directory(op, name);
  };
  run_below<void>(*mount_, Counted::remove_directory, caller, parent, std::string(name), std::move(attempt),
                  std::move(reply));
}

void MountFileSystem::rename(const Caller& caller, NodeId parent, std::string_view name, NodeId new_parent,
                             std::string_view new_name, unsigned flags, Reply<void> reply) {
  auto attempt = [mount = mount_.get(), parent, from = std::string(name), new_parent, to = std::string(new_name),
                  flags](const OperationPtr& op) -> Attempt<void> {
    PLAYFS_ATTEMPT(NodePtr node, target_of(*mount, op, parent));
    PLAYFS_ATTEMPT(NodePtr directory, target_of(*mount, op, new_parent));
    return node->rename(op, from, directory, to, flags);
  };
  run_below<void>(*mount_, Counted::rename, caller, parent, std::string(name), std::move(attempt), std::move(reply),
                  new_parent);
}

void MountFileSystem::read(const Caller& caller, NodeId id, std::uint64_t offset, std::size_t size,
                           Reply<std::string> reply) {
  auto attempt = [mount = mount_.get(), id, offset, size](const OperationPtr& op) -> Attempt<std::string> {
    PLAYFS_ATTEMPT(NodePtr node, target_of(*mount, op, id));
    auto bytes = node->read(op, offset, size);
    if (bytes) mount->metrics().count_bytes_read(bytes->size());
    return bytes;
  };
  run<std::string>(*mount_, Counted::read, caller, id, std::move(attempt), std::move(reply));
}

void MountFileSystem::write(const Caller& caller, NodeId id, std::uint64_t offset, std::string data,
                            Reply<std::size_t> reply) {
  auto attempt = [mount = mount_.get(), id, offset,
                  data = std::move(data)](const OperationPtr& op) -> Attempt<std::size_t> {
    PLAYFS_ATTEMPT(NodePtr node, target_of(*mount, op, id));
    auto written = node->write(op, offset, data);
    if (written) mount->metrics().count_bytes_written(*written);
    return written;
  };
  run<std::size_t>(*mount_, Counted::write, caller, id, std::move(attempt), std::move(reply));
}

void MountFileSystem::drop_pages(NodeId id, std::uint64_t offset) {
  mount_->notifications().node_changed(id, static_cast<std::int64_t>(offset));
}

void MountFileSystem::sync(const Caller& caller, NodeId id, Reply<void> reply) {
  auto attempt = [mount = mount_.get(), id](const OperationPtr& op) -> Attempt<void> {
    PLAYFS_ATTEMPT(NodePtr node, target_of(*mount, op, id));
    return node->sync(op);
  };
  run<void>(*mount_, Counted::sync, caller, id, std::move(attempt), std::move(reply));
}

void MountFileSystem::allocate(const Caller& caller, NodeId id, int mode, std::uint64_t offset, std::uint64_t length,
                               Reply<void> reply) {
  auto attempt = [mount = mount_.get(), id, mode, offset, length](const OperationPtr& op) -> Attempt<void> {
    PLAYFS_ATTEMPT(NodePtr node, target_of(*mount, op, id));
    return node->allocate(op, mode, offset, length);
  };
  run<void>(*mount_, Counted::allocate, caller, id, std::move(attempt), std::move(reply));
}

void MountFileSystem::seek(const Caller& caller, NodeId id, std::uint64_t offset, int whence,
                           Reply<std::uint64_t> reply) {
  auto attempt = [mount = mount_.get(), id, offset, whence](const OperationPtr& op) -> Attempt<std::uint64_t> {
    PLAYFS_ATTEMPT(NodePtr node, target_of(*mount, op, id));
    return node->seek(op, offset, whence);
  };
  run<std::uint64_t>(*mount_, Counted::seek, caller, id, std::move(attempt), std::move(reply));
}

void MountFileSystem::list(const Caller& caller, NodeId id, std::uint64_t offset, bool with_entries, Room room,
                           Reply<void> reply) {
  auto attempt = [mount = mount_.get(), id, offset, with_entries,
                  room = std::move(room)](const OperationPtr& op) -> Attempt<void> {
    PLAYFS_ATTEMPT(NodePtr node, target_of(*mount, op, id));
    return node->list(op, offset, with_entries, [&](DirectoryItem& item, const NodePtr& child) {
      if (!room(item)) return false;
      if (child) mount->nodes().refer(child);
      return true;
    });
  };
  run<void>(*mount_, Counted::list, caller, id, std::move(attempt), std::move(reply));
}

void MountFileSystem::status(const Caller& caller, NodeId id, Reply<FileSystemStatus> reply) {
  // Reports the disk that holds the stages, whichever node was asked.
  auto attempt = [mount = mount_.get()](const OperationPtr&) -> Attempt<FileSystemStatus> {
    struct statvfs disk {};
    if (::statvfs(mount->options().state_directory.c_str(), &disk) != 0) {
      return fail(error_from_errno(errno, mount->options().state_directory));
    }
    FileSystemStatus status;
    status.block_size = disk.f_frsize;
    status.blocks = disk.f_blocks;
    status.blocks_free = disk.f_bfree;
    status.blocks_available = disk.f_bavail;
    status.files = disk.f_files;
    status.files_free = disk.f_ffree;
    return status;
  };
  run<FileSystemStatus>(*mount_, Counted::status, caller, id, std::move(attempt), std::move(reply));
}

void MountFileSystem::get_xattr(const Caller& caller, NodeId id, std::string_view name, Reply<std::string> reply) {
  // The kernel asks for security.capability on many writes: answer without touching the node.
  if (!name.starts_with(kXattrPrefix)) {
    mount_->metrics().count(Counted::get_xattr);
    return reply(fail(ErrorCode::no_attribute, "no such attribute"));
  }
  auto attempt = [mount = mount_.get(), id, name = std::string(name.substr(kXattrPrefix.size()))](
                     const OperationPtr& op) -> Attempt<std::string> {
    PLAYFS_ATTEMPT(NodePtr node, target_of(*mount, op, id));
    PLAYFS_ATTEMPT(std::optional<std::string> value, node->xattr(op, name));
    if (!value) return fail(ErrorCode::no_attribute, "no such attribute");
    return std::move(*value);
  };
  run<std::string>(*mount_, Counted::get_xattr, caller, id, std::move(attempt), std::move(reply));
}

void MountFileSystem::set_xattr(const Caller& caller, NodeId id, std::string_view name, std::string_view,
                                Reply<void> reply) {
  auto attempt = [mount = mount_.get(), id, name = std::string(name)](const OperationPtr& op) -> Attempt<void> {
    PLAYFS_ATTEMPT(NodePtr node, target_of(*mount, op, id));
    return node->set_xattr(op, name);
  };
  run<void>(*mount_, Counted::set_xattr, caller, id, std::move(attempt), std::move(reply));
}

void MountFileSystem::remove_xattr(const Caller& caller, NodeId id, std::string_view name, Reply<void> reply) {
  auto attempt = [mount = mount_.get(), id, name = std::string(name)](const OperationPtr& op) -> Attempt<void> {
    PLAYFS_ATTEMPT(NodePtr node, target_of(*mount, op, id));
    return node->remove_xattr(op, name);
  };
  run<void>(*mount_, Counted::remove_xattr, caller, id, std::move(attempt), std::move(reply));
}

namespace {

Async<CommitResult> commit_in(Mount& mount, OperationPtr op, NodeId id, CommitRequest request,
                              std::shared_ptr<std::string> path, std::int64_t order) {
  PLAYFS_AWAIT(const auto tree, repeat([&] { return work_tree_of(mount, op, id); }));
  *path = tree->document_path();
  PLAYFS_AWAIT(const CommitResult result, tree->commit(op, std::move(request)));
  mount.set_last_result(*path, order, tree->document(result));
  co_return result;
}

}  // namespace

void MountFileSystem::commit(const Caller& caller, NodeId id, CommitRequest request, Reply<CommitResult> reply) {
  auto path = std::make_shared<std::string>();  // path of the control file that shows the outcome, once known
  const std::int64_t order = mount_->requests().next_order(mount_->clock().wall());
  auto attempt = as_attempt([mount = mount_.get(), id, path, order, request = std::move(request)](
                                const OperationPtr& op) { return commit_in(*mount, op, id, request, path, order); });
  auto record = [mount = mount_.get(), path, order, reply = std::move(reply)](Result<CommitResult> result) mutable {
    if (!result && !path->empty()) mount->set_last_error(*path, order, result.error());
    reply(std::move(result));
  };
  run_ioctl<CommitResult>(*mount_, Counted::commit, caller, id, std::move(attempt),
                          Reply<CommitResult>(std::move(record)));
}

void MountFileSystem::work_status(const Caller& caller, NodeId id, Reply<WorkStatus> reply) {
  auto attempt = [mount = mount_.get(), id](const OperationPtr& op) -> Attempt<WorkStatus> {
    PLAYFS_ATTEMPT(std::shared_ptr<WorkTree> tree, work_tree_of(*mount, op, id));
    return tree->work_status(op);
  };
  run_ioctl<WorkStatus>(*mount_, Counted::work_status, caller, id, std::move(attempt), std::move(reply));
}

namespace {

Async<DiscardResult> discard_in(Mount& mount, OperationPtr op, NodeId id, DiscardRequest request) {
  PLAYFS_AWAIT(const NodePtr node, repeat([&] { return target_of(mount, op, id); }));
  PLAYFS_AWAIT(const auto tree, repeat([&] { return node->work_tree(op); }));
  if (request.paths.empty()) {
    auto path = node->path_in_work();
    if (!path) co_return fail(ErrorCode::not_found, "the file was deleted");
    request.paths.push_back(*std::move(path));
  }
  auto discarded = tree->discard(op, std::move(request.paths), request.dry_run, request.kept_in);
  co_return co_await discarded;
}

Async<CheckpointResult> checkpoint_in(Mount& mount, OperationPtr op, NodeId id, CheckpointRequest request) {
  PLAYFS_AWAIT(const auto tree, repeat([&] { return work_tree_of(mount, op, id); }));
  auto made = tree->checkpoint(op, std::move(request));
  co_return co_await made;
}

Async<RestoreResult> restore_in(Mount& mount, OperationPtr op, NodeId id, RestoreRequest request) {
  PLAYFS_AWAIT(const auto tree, repeat([&] { return work_tree_of(mount, op, id); }));
  auto restored = tree->restore(op, std::move(request));
  co_return co_await restored;
}

Async<UpdateResult> update_in(Mount& mount, OperationPtr op, NodeId id, RevisionId revision) {
  PLAYFS_AWAIT(const auto tree, repeat([&] { return work_tree_of(mount, op, id); }));
  auto updated = revision.empty() ? tree->update(op) : tree->merge(op, std::move(revision));
  co_return co_await updated;
}

Async<Cancelled> cancel_in(Mount& mount, OperationPtr op, NodeId id) {
  PLAYFS_AWAIT(const auto tree, repeat([&] { return work_tree_of(mount, op, id); }));
  auto cancelled = tree->cancel(op);
  co_return co_await cancelled;
}

}  // namespace

void MountFileSystem::discard(const Caller& caller, NodeId id, DiscardRequest request, Reply<DiscardResult> reply) {
  auto attempt = as_attempt([mount = mount_.get(), id, request = std::move(request)](const OperationPtr& op) {
    return discard_in(*mount, op, id, request);
  });
  run_ioctl<DiscardResult>(*mount_, Counted::discard, caller, id, std::move(attempt), std::move(reply));
}

void MountFileSystem::checkpoint(const Caller& caller, NodeId id, CheckpointRequest request,
                                 Reply<CheckpointResult> reply) {
  auto attempt = as_attempt([mount = mount_.get(), id, request = std::move(request)](const OperationPtr& op) {
    return checkpoint_in(*mount, op, id, request);
  });
  run_ioctl<CheckpointResult>(*mount_, Counted::checkpoint, caller, id, std::move(attempt), std::move(reply));
}

void MountFileSystem::restore(const Caller& caller, NodeId id, RestoreRequest request, Reply<RestoreResult> reply) {
  auto attempt = as_attempt([mount = mount_.get(), id, request = std::move(request)](const OperationPtr& op) {
    return restore_in(*mount, op, id, request);
  });
  run_ioctl<RestoreResult>(*mount_, Counted::restore, caller, id, std::move(attempt), std::move(reply));
}

void MountFileSystem::update(const Caller& caller, NodeId id, RevisionId revision, Reply<UpdateResult> reply) {
  auto attempt = as_attempt([mount = mount_.get(), id, revision = std::move(revision)](const OperationPtr& op) {
    return update_in(*mount, op, id, revision);
  });
  run_ioctl<UpdateResult>(*mount_, Counted::update, caller, id, std::move(attempt), std::move(reply));
}

void MountFileSystem::cancel(const Caller& caller, NodeId id, Reply<Cancelled> reply) {
  auto attempt = as_attempt([mount = mount_.get(), id](const OperationPtr& op) { return cancel_in(*mount, op, id); });
  run_ioctl<Cancelled>(*mount_, Counted::cancel, caller, id, std::move(attempt), std::move(reply));
}

}  // namespace playfs::vfs
