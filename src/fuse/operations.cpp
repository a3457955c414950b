#include "fuse/operations.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "fuse/handshake.h"
#include "fuse/ioctl.h"

namespace playfs::fuse {

namespace {

SessionContext& context_of(fuse_req_t req) {
  return *static_cast<SessionContext*>(static_cast<InFlight*>(fuse_req_userdata(req)));
}

// An exception is a bug; it must cost one operation, not the mount. Unwinding destroys the request, which answers EIO.
template <class Body>
void guarded(const char* operation, Body body) {
  try {
    body();
  } catch (const std::exception& bug) {
    log_error(std::string("exception in ") + operation + ": " + bug.what());
  } catch (...) {
    log_error(std::string("exception in ") + operation);
  }
}

/// Runs `body(file_system, caller, request)`; `body` moves the request into the reply that it passes on.
template <class Body>
void serve(const char* operation, fuse_req_t req, Body body) {
  guarded(operation, [&] {
    SessionContext& context = context_of(req);
    Request request(req, context);
    vfs::Caller caller = request.caller();
    body(context.file_system, caller, std::move(request));
  });
}

vfs::Reply<vfs::Entry> entry_reply(Request request, vfs::FileSystem& fs) {
  return [request = std::move(request), &fs](Result<vfs::Entry> result) mutable {
    if (!result) return request.error(result.error());
    if (!request.entry(*result) && result->node != 0) fs.forget(result->node, 1);
  };
}

vfs::Reply<void> plain_reply(Request request) {
  return [request = std::move(request)](Status result) mutable {
    if (result) request.done();
    else request.error(result.error());
  };
}

vfs::Reply<vfs::AttributesReply> attributes_reply(Request request) {
  return [request = std::move(request)](Result<vfs::AttributesReply> result) mutable {
    if (result) request.attributes(*result);
    else request.error(result.error());
  };
}

/// Times outside our range (the years 1677 to 2262) are clamped, as on other file systems.
WallTime wall_time(const timespec& time) {
  constexpr std::int64_t second = 1'000'000'000, most = std::numeric_limits<std::int64_t>::max() / second - 1;
  return {std::clamp<std::int64_t>(time.tv_sec, -most, most) * second + time.tv_nsec};
}

WallTime now() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return wall_time(time);
}

void initialise(void* user_data, fuse_conn_info* connection) {
  const SessionContext& context = *static_cast<SessionContext*>(static_cast<InFlight*>(user_data));
  // Reads into the page cache count as "background" requests: past their limit, 12 by default, the kernel blocks all
  // other reads of the mount, even of cached content. A few readers of a hanging server would exhaust it, and past the
  // congestion threshold there is less readahead, which would slow everyone else down. Hence the maximum for both:
  // limiting waiting readers is our job, and for unprivileged mounts the kernel's.
  connection->max_background = connection->congestion_threshold = std::numeric_limits<std::uint16_t>::max();
  auto want = [&](unsigned capability, bool wanted) {
    if (wanted && (connection->capable & capability)) connection->want |= capability;
    else connection->want &= ~capability;
  };
  // We invalidate pages and attributes explicitly: nothing is dropped because a time stamp looks new.
  want(FUSE_CAP_AUTO_INVAL_DATA, false);
  want(FUSE_CAP_EXPLICIT_INVAL_DATA, true);
  // Link targets do not change, and reading one never waits (vfs/late_links.h).
  want(FUSE_CAP_CACHE_SYMLINKS, context.keeps_links);
  // A listing always brings all attributes: the kernel's heuristic would cost single lookups later.
  want(FUSE_CAP_READDIRPLUS, true);
  want(FUSE_CAP_READDIRPLUS_AUTO, false);
  want(FUSE_CAP_PARALLEL_DIROPS, true);
  // There is no open, see no_open.
  want(FUSE_CAP_NO_OPEN_SUPPORT, true);
  want(FUSE_CAP_NO_OPENDIR_SUPPORT, true);
  // Without an open, O_TRUNC has to arrive as a SETATTR, or it would never arrive.
  want(FUSE_CAP_ATOMIC_O_TRUNC, false);
  // A write that returned must have reached us: the writeback cache would lose it if the daemon died.
  want(FUSE_CAP_WRITEBACK_CACHE, false);
  // The older form of FUSE_HANDLE_KILLPRIV_V2, see handshake.h.
  want(FUSE_CAP_HANDLE_KILLPRIV, false);
  want(FUSE_CAP_IOCTL_DIR, true);
  ask_newer_libfuse(*connection, context.request_limit_s);
}

void lookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  serve("lookup", req, [&](auto& fs, auto& caller, Request request) {
    fs.lookup(caller, parent, name, entry_reply(std::move(request), fs));
  });
}

void forget(fuse_req_t req, fuse_ino_t node, uint64_t count) {
  guarded("forget", [&] { context_of(req).file_system.forget(node, count); });
  fuse_reply_none(req);
}

void forget_multi(fuse_req_t req, size_t count, fuse_forget_data* forgets) {
  guarded("forget", [&] {
    for (size_t i = 0; i < count; ++i) context_of(req).file_system.forget(forgets[i].ino, forgets[i].nlookup);
  });
  fuse_reply_none(req);
}

void get_attributes(fuse_req_t req, fuse_ino_t node, fuse_file_info*) {
  serve("getattr", req, [&](auto& fs, auto& caller, Request request) {
    fs.get_attributes(caller, node, attributes_reply(std::move(request)));
  });
}

void set_attributes(fuse_req_t req, fuse_ino_t node, struct stat* wanted, int which, fuse_file_info*) {
  vfs::SetAttributes change;
  if (which & FUSE_SET_ATTR_MODE) change.mode = wanted->st_mode;
  if (which & FUSE_SET_ATTR_UID) change.uid = wanted->st_uid;
  if (which & FUSE_SET_ATTR_GID) change.gid = wanted->st_gid;
  if (which & FUSE_SET_ATTR_SIZE) change.size = static_cast<std::uint64_t>(wanted->st_size);
  if (which & FUSE_SET_ATTR_ATIME) change.atime = which & FUSE_SET_ATTR_ATIME_NOW ? now() : wall_time(wanted->st_atim);
  if (which & FUSE_SET_ATTR_MTIME) change.mtime = which & FUSE_SET_ATTR_MTIME_NOW ? now() : wall_time(wanted->st_mtim);
  serve("setattr", req, [&](auto& fs, auto& caller, Request request) {
    fs.set_attributes(caller, node, change, attributes_reply(std::move(request)));
  });
}

void read_link(fuse_req_t req, fuse_ino_t node) {
  serve("readlink", req, [&](auto& fs, auto& caller, Request request) {
    fs.read_link(caller, node, [request = std::move(request)](Result<std::string> result) mutable {
      if (result) request.link_target(*result);
      else request.error(result.error());
    });
  });
}

void make_node(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, dev_t device) {
  serve("mknod", req, [&](auto& fs, auto& caller, Request request) {
    fs.make_node(caller, parent, name, mode, device, entry_reply(std::move(request), fs));
  });
}

void make_directory(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode) {
  serve("mkdir", req, [&](auto& fs, auto& caller, Request request) {
    fs.make_directory(caller, parent, name, mode, entry_reply(std::move(request), fs));
  });
}

void make_symlink(fuse_req_t req, const char* target, fuse_ino_t parent, const char* name) {
  serve("symlink", req, [&](auto& fs, auto& caller, Request request) {
    fs.make_symlink(caller, parent, name, target, entry_reply(std::move(request), fs));
  });
}

void make_link(fuse_req_t req, fuse_ino_t node, fuse_ino_t parent, const char* name) {
  serve("link", req, [&](auto& fs, auto& caller, Request request) {
    fs.link(caller, node, parent, name, entry_reply(std::move(request), fs));
  });
}

void remove_file(fuse_req_t req, fuse_ino_t parent, const char* name) {
  serve("unlink", req, [&](auto& fs, auto& caller, Request request) {
    fs.unlink(caller, parent, name, plain_reply(std::move(request)));
  });
}

void remove_directory(fuse_req_t req, fuse_ino_t parent, const char* name) {
  serve("rmdir", req, [&](auto& fs, auto& caller, Request request) {
    fs.remove_directory(caller, parent, name, plain_reply(std::move(request)));
  });
}

void move(fuse_req_t req, fuse_ino_t parent, const char* name, fuse_ino_t new_parent, const char* new_name,
          unsigned flags) {
  serve("rename", req, [&](auto& fs, auto& caller, Request request) {
    fs.rename(caller, parent, name, new_parent, new_name, flags, plain_reply(std::move(request)));
  });
}

void read(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset, fuse_file_info*) {
  SessionContext& context = context_of(req);
  serve("read", req, [&](auto& fs, auto& caller, Request request) {
    const std::uint64_t id = request.id();
    fs.read(caller, node, static_cast<std::uint64_t>(offset), size,
            [request = std::move(request)](Result<std::string> result) mutable {
              // If the kernel no longer wants the answer, there is nothing to undo.
              if (result) static_cast<void>(request.data(*result));
              else request.error(result.error());
            });
    context.interrupt_without(caller.pid, id);
  });
}

void write(fuse_req_t req, fuse_ino_t node, const char* bytes, size_t size, off_t offset, fuse_file_info* how) {
  serve("write", req, [&](auto& fs, auto& caller, Request request) {
    // The kernel undoes a refused write(2) itself, but keeps refused pages of a mapping as if they had been written.
    const bool from_mapping = how->writepage != 0;
    const auto at = static_cast<std::uint64_t>(offset);
    fs.write(caller, node, at, std::string(bytes, size),
             [request = std::move(request), &fs, node, at, from_mapping](Result<std::size_t> result) mutable {
               if (result) return request.written(*result);
               request.error(result.error());
               if (from_mapping) fs.drop_pages(node, at);
             });
  });
}

void sync(fuse_req_t req, fuse_ino_t node, int, fuse_file_info*) {
  serve("fsync", req,
        [&](auto& fs, auto& caller, Request request) { fs.sync(caller, node, plain_reply(std::move(request))); });
}

void allocate(fuse_req_t req, fuse_ino_t node, int mode, off_t offset, off_t length, fuse_file_info*) {
  serve("fallocate", req, [&](auto& fs, auto& caller, Request request) {
    fs.allocate(caller, node, mode, static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(length),
                plain_reply(std::move(request)));
  });
}

void seek(fuse_req_t req, fuse_ino_t node, off_t offset, int whence, fuse_file_info*) {
  // In a read-only mount nothing has holes: ENOSYS stops the kernel from asking again.
  if (context_of(req).read_only) {
    fuse_reply_err(req, ENOSYS);
    return;
  }
  serve("lseek", req, [&](auto& fs, auto& caller, Request request) {
    fs.seek(caller, node, static_cast<std::uint64_t>(offset), whence,
            [request = std::move(request)](Result<std::uint64_t> result) mutable {
              if (result) request.offset(*result);
              else request.error(result.error());
            });
  });
}

/// Packs a listing into one reply. If it does not reach the kernel, the lookups counted for its items are undone.
void list(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset, bool with_entries) {
  struct Packed {
    std::vector<char> buffer;
    std::size_t used = 0;
    std::vector<vfs::NodeId> counted;
  };
  serve(with_entries ? "readdirplus" : "readdir", req, [&](auto& fs, auto& caller, Request request) {
    auto packed = std::make_shared<Packed>();
    packed->buffer.resize(size);
    auto room = [packed, req, with_entries](const vfs::DirectoryItem& item) {
      char* end = packed->buffer.data() + packed->used;
      std::size_t left = packed->buffer.size() - packed->used;
      auto next = static_cast<off_t>(item.next_offset);
      fuse_entry_param entry = entry_param(item.entry);
      std::size_t needed = with_entries ? fuse_add_direntry_plus(req, end, left, item.name.c_str(), &entry, next)
                                        : fuse_add_direntry(req, end, left, item.name.c_str(), &entry.attr, next);
      if (needed > left) return false;
      packed->used += needed;
      if (with_entries && item.entry.node != 0) packed->counted.push_back(item.entry.node);
      return true;
    };
    fs.list(caller, node, static_cast<std::uint64_t>(offset), with_entries, std::move(room),
            [request = std::move(request), packed, &fs](Status result) mutable {
              // The part that fits is an answer even if an error followed; the next call meets the error again.
              bool delivered = false;
              if (result || packed->used > 0) delivered = request.data({packed->buffer.data(), packed->used});
              else request.error(result.error());
              if (delivered) return;
              for (vfs::NodeId counted : packed->counted) fs.forget(counted, 1);
            });
  });
}

void read_directory(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset, fuse_file_info*) {
  list(req, node, size, offset, false);
}

void read_directory_plus(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset, fuse_file_info*) {
  list(req, node, size, offset, true);
}

void file_system_status(fuse_req_t req, fuse_ino_t node) {
  serve("statfs", req, [&](auto& fs, auto& caller, Request request) {
    fs.status(caller, node, [request = std::move(request)](Result<vfs::FileSystemStatus> result) mutable {
      if (result) request.file_system_status(*result);
      else request.error(result.error());
    });
  });
}

/// The value, or only its size if the caller asks for that (`room` 0).
void reply_value(Request& request, std::string_view value, std::size_t room) {
  if (room == 0) request.xattr_size(value.size());
  else if (value.size() > room) request.error_number(ERANGE);
  else static_cast<void>(request.data(value));
}

void get_xattr(fuse_req_t req, fuse_ino_t node, const char* name, size_t room) {
  serve("getxattr", req, [&](auto& fs, auto& caller, Request request) {
    fs.get_xattr(caller, node, name, [request = std::move(request), room](Result<std::string> result) mutable {
      if (result) reply_value(request, *result, room);
      else request.error(result.error());
    });
  });
}

void list_xattrs(fuse_req_t req, fuse_ino_t, size_t room) {
  // An empty list rather than "not supported", since attributes can be read by name.
  serve("listxattr", req, [&](auto&, auto&, Request request) { reply_value(request, {}, room); });
}

void set_xattr(fuse_req_t req, fuse_ino_t node, const char* name, const char* value, size_t size, int) {
  serve("setxattr", req, [&](auto& fs, auto& caller, Request request) {
    fs.set_xattr(caller, node, name, std::string_view(value, size), plain_reply(std::move(request)));
  });
}

void remove_xattr(fuse_req_t req, fuse_ino_t node, const char* name) {
  serve("removexattr", req, [&](auto& fs, auto& caller, Request request) {
    fs.remove_xattr(caller, node, name, plain_reply(std::move(request)));
  });
}

void control(fuse_req_t req, fuse_ino_t node, unsigned command, void*, fuse_file_info*, unsigned, const void* input,
             size_t input_size, size_t) {
  serve("ioctl", req, [&](auto& fs, auto&, Request request) {
    serve_ioctl(fs, node, command, {static_cast<const char*>(input), input_size}, std::move(request));
  });
}

// Nothing happens at open or close, so the kernel need not report them: one ENOSYS holds for the whole mount. (libfuse
// by itself would answer that the open succeeded, and keep being asked.)
void no_open(fuse_req_t req, fuse_ino_t, fuse_file_info*) { fuse_reply_err(req, ENOSYS); }

fuse_lowlevel_ops make_table() {
  fuse_lowlevel_ops table{};
  table.init = initialise;
  table.lookup = lookup;
  table.forget = forget;
  table.forget_multi = forget_multi;
  table.getattr = get_attributes;
  table.setattr = set_attributes;
  table.readlink = read_link;
  table.mknod = make_node;
  table.mkdir = make_directory;
  table.symlink = make_symlink;
  table.link = make_link;
  table.unlink = remove_file;
  table.rmdir = remove_directory;
  table.rename = move;
  table.open = no_open;
  table.flush = no_open;
  table.opendir = no_open;
  table.read = read;
  table.write = write;
  table.fsync = sync;
  table.fsyncdir = sync;
  table.readdir = read_directory;
  table.readdirplus = read_directory_plus;
  table.statfs = file_system_status;
  table.getxattr = get_xattr;
  table.listxattr = list_xattrs;
  table.setxattr = set_xattr;
  table.removexattr = remove_xattr;
  table.ioctl = control;
  table.fallocate = allocate;
  table.lseek = seek;
  // Left out on purpose: release, releasedir and create, which need an open, and locks, which the kernel handles.
  return table;
}

}  // namespace

const fuse_lowlevel_ops& operations() {
  static const fuse_lowlevel_ops table = make_table();
  return table;
}

}  // namespace playfs::fuse
