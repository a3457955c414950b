// The least that a FUSE file system over a directory can cost: what playfs is measured against.
//
//   bench-passthrough [-o OPTION,…] [--stateless] [--writeback] [--threads N] [--count FILE] SOURCE DIR
//
// Written from libfuse's public low-level interface. The kernel caches names, missing names, attributes, listings and
// pages without end, as it does for playfs. Without more options opens and closes are messages, as in libfuse's
// passthrough_hp; --stateless answers them ENOSYS, as playfs does. --writeback lets the kernel keep writes to itself,
// as passthrough_hp does (and loses them with the process). --count maps FILE, whose first eight bytes are then the
// number of messages so far. Stays in the foreground until it is unmounted or interrupted.

#include <dirent.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "passthrough_inodes.h"

namespace playfs::bench {
namespace {

constexpr double kEndless = 1e9;

struct Listing {
  struct Item {
    std::string name;
    struct stat attributes;
  };
  std::vector<Item> items;
};

struct World {
  World(const char* source, bool without_opens, bool with_writeback)
      : nodes(source), stateless(without_opens), writeback(with_writeback) {}
  NodeTable nodes;
  bool stateless, writeback;
};

World& world(fuse_req_t req) { return *static_cast<World*>(fuse_req_userdata(req)); }
Node& node_of(fuse_req_t req, fuse_ino_t id) { return world(req).nodes.get(id); }

void reply_status(fuse_req_t req, int result) { fuse_reply_err(req, result < 0 ? errno : 0); }

void initialise(void* data, fuse_conn_info* connection) {
  auto& world = *static_cast<World*>(data);
  auto want = [&](unsigned capability, bool wanted) {
    if (wanted) connection->want |= connection->capable & capability;
    else connection->want &= ~capability;
  };
  want(FUSE_CAP_AUTO_INVAL_DATA, false);
  want(FUSE_CAP_EXPLICIT_INVAL_DATA, true);
  want(FUSE_CAP_READDIRPLUS, true);
  want(FUSE_CAP_READDIRPLUS_AUTO, false);
  want(FUSE_CAP_ATOMIC_O_TRUNC, !world.stateless);
  want(FUSE_CAP_WRITEBACK_CACHE, world.writeback);
  want(FUSE_CAP_FLOCK_LOCKS, false);
  want(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE, !world.stateless);
}

void reply_entry(fuse_req_t req, fuse_ino_t parent, const char* name) {
  fuse_entry_param entry{};
  entry.entry_timeout = entry.attr_timeout = kEndless;
  int failed = world(req).nodes.look_up(node_of(req, parent), name, entry);
  // A missing name is an entry without a node, which the kernel may keep.
  if (failed && failed != ENOENT) fuse_reply_err(req, failed);
  else fuse_reply_entry(req, &entry);
}

void look_up(fuse_req_t req, fuse_ino_t parent, const char* name) { reply_entry(req, parent, name); }

void forget(fuse_req_t req, fuse_ino_t id, uint64_t count) {
  world(req).nodes.forget(id, count);
  fuse_reply_none(req);
}

void forget_multi(fuse_req_t req, size_t count, fuse_forget_data* forgets) {
  for (size_t i = 0; i < count; ++i) world(req).nodes.forget(forgets[i].ino, forgets[i].nlookup);
  fuse_reply_none(req);
}

void get_attributes(fuse_req_t req, fuse_ino_t id, fuse_file_info*) {
  struct stat attributes {};
  if (fstatat(node_of(req, id).place.get(), "", &attributes, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0)
    fuse_reply_err(req, errno);
  else fuse_reply_attr(req, &attributes, kEndless);
}

void set_attributes(fuse_req_t req, fuse_ino_t id, struct stat* wanted, int which, fuse_file_info* file) {
  Node& node = node_of(req, id);
  int done = 0;
  if (which & FUSE_SET_ATTR_MODE) done = chmod(node.proc_path().c_str(), wanted->st_mode);
  if (done == 0 && (which & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))) {
    uid_t uid = which & FUSE_SET_ATTR_UID ? wanted->st_uid : static_cast<uid_t>(-1);
    gid_t gid = which & FUSE_SET_ATTR_GID ? wanted->st_gid : static_cast<gid_t>(-1);
    done = fchownat(node.place.get(), "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
  }
  if (done == 0 && (which & FUSE_SET_ATTR_SIZE)) {
    if (world(req).stateless) done = node.content() < 0 ? -1 : ftruncate(node.content(), wanted->st_size);
    else if (file) done = ftruncate(static_cast<int>(file->fh), wanted->st_size);
    else done = truncate(node.proc_path().c_str(), wanted->st_size);
  }
  if (done == 0 && (which & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME))) {
    auto time = [which](int set, int set_now, const timespec& value) {
      return which & set_now ? timespec{0, UTIME_NOW} : which & set ? value : timespec{0, UTIME_OMIT};
    };
    timespec times[2] = {time(FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW, wanted->st_atim),
                         time(FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW, wanted->st_mtim)};
    done = utimensat(AT_FDCWD, node.proc_path().c_str(), times, 0);
  }
  if (done != 0) fuse_reply_err(req, errno);
  else get_attributes(req, id, nullptr);
}

void read_link(fuse_req_t req, fuse_ino_t id) {
  char target[4097];
  ssize_t size = readlinkat(node_of(req, id).place.get(), "", target, sizeof target - 1);
  if (size < 0) {
    fuse_reply_err(req, errno);
    return;
  }
  target[size] = 0;
  fuse_reply_readlink(req, target);
}

/// Answers with the entry that a call has just made, or with why it was not made.
void reply_made(fuse_req_t req, fuse_ino_t parent, const char* name, int result) {
  if (result != 0) fuse_reply_err(req, errno);
  else reply_entry(req, parent, name);
}

void make_node(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, dev_t device) {
  reply_made(req, parent, name, mknodat(node_of(req, parent).place.get(), name, mode, device));
}

void make_directory(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode) {
  reply_made(req, parent, name, mkdirat(node_of(req, parent).place.get(), name, mode));
}

void make_symlink(fuse_req_t req, const char* target, fuse_ino_t parent, const char* name) {
  reply_made(req, parent, name, symlinkat(target, node_of(req, parent).place.get(), name));
}

void make_link(fuse_req_t req, fuse_ino_t id, fuse_ino_t parent, const char* name) {
  reply_made(req, parent, name,
             linkat(node_of(req, id).place.get(), "", node_of(req, parent).place.get(), name, AT_EMPTY_PATH));
}

void remove_file(fuse_req_t req, fuse_ino_t parent, const char* name) {
  reply_status(req, unlinkat(node_of(req, parent).place.get(), name, 0));
}

void remove_directory(fuse_req_t req, fuse_ino_t parent, const char* name) {
  reply_status(req, unlinkat(node_of(req, parent).place.get(), name, AT_REMOVEDIR));
}

void move(fuse_req_t req, fuse_ino_t parent, const char* name, fuse_ino_t new_parent, const char* new_name,
          unsigned flags) {
  reply_status(
      req, renameat2(node_of(req, parent).place.get(), name, node_of(req, new_parent).place.get(), new_name, flags));
}

// Opens. With writeback the kernel also reads what was opened for writing, and does the appending.
int open_flags(const World& world, int flags) {
  if (world.writeback && (flags & O_ACCMODE) == O_WRONLY) flags = (flags & ~O_ACCMODE) | O_RDWR;
  if (world.writeback) flags &= ~O_APPEND;
  return (flags & ~O_NOFOLLOW) | O_CLOEXEC;
}

void open_file(fuse_req_t req, fuse_ino_t id, fuse_file_info* file) {
  if (world(req).stateless) {
    fuse_reply_err(req, ENOSYS);
    return;
  }
  int fd = open(node_of(req, id).proc_path().c_str(), open_flags(world(req), file->flags));
  if (fd < 0) {
    fuse_reply_err(req, errno);
    return;
  }
  file->fh = static_cast<uint64_t>(fd);
  file->keep_cache = 1;
  if (fuse_reply_open(req, file) != 0) close(fd);
}

void create_file(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, fuse_file_info* file) {
  int fd = openat(node_of(req, parent).place.get(), name, (open_flags(world(req), file->flags) | O_CREAT), mode);
  fuse_entry_param entry{};
  entry.entry_timeout = entry.attr_timeout = kEndless;
  int failed = fd < 0 ? errno : world(req).nodes.look_up(node_of(req, parent), name, entry);
  if (failed) {
    if (fd >= 0) close(fd);
    fuse_reply_err(req, failed);
    return;
  }
  file->fh = static_cast<uint64_t>(fd);
  file->keep_cache = 1;
  if (fuse_reply_create(req, &entry, file) != 0) close(fd);
}

void release_file(fuse_req_t req, fuse_ino_t, fuse_file_info* file) {
  close(static_cast<int>(file->fh));
  fuse_reply_err(req, 0);
}

void flush_file(fuse_req_t req, fuse_ino_t, fuse_file_info* file) {
  if (world(req).stateless) fuse_reply_err(req, ENOSYS);
  else reply_status(req, close(dup(static_cast<int>(file->fh))));
}

int content_of(fuse_req_t req, fuse_ino_t id, const fuse_file_info* file) {
  return world(req).stateless ? node_of(req, id).content() : static_cast<int>(file->fh);
}

fuse_bufvec part_of(int fd, size_t size, off_t offset) {
  fuse_bufvec part{};
  part.count = 1;
  part.buf[0].size = size;
  part.buf[0].flags = static_cast<fuse_buf_flags>(FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK);
  part.buf[0].fd = fd;
  part.buf[0].pos = offset;
  return part;
}

void read_file(fuse_req_t req, fuse_ino_t id, size_t size, off_t offset, fuse_file_info* file) {
  fuse_bufvec buffer = part_of(content_of(req, id, file), size, offset);
  if (buffer.buf[0].fd < 0) fuse_reply_err(req, errno);
  else fuse_reply_data(req, &buffer, static_cast<fuse_buf_copy_flags>(0));
}

void write_file(fuse_req_t req, fuse_ino_t id, fuse_bufvec* from, off_t offset, fuse_file_info* file) {
  fuse_bufvec to = part_of(content_of(req, id, file), fuse_buf_size(from), offset);
  ssize_t written = to.buf[0].fd < 0 ? -errno : fuse_buf_copy(&to, from, static_cast<fuse_buf_copy_flags>(0));
  if (written < 0) fuse_reply_err(req, static_cast<int>(-written));
  else fuse_reply_write(req, static_cast<size_t>(written));
}

void sync_file(fuse_req_t req, fuse_ino_t id, int only_data, fuse_file_info* file) {
  int fd = content_of(req, id, file);
  reply_status(req, fd < 0 ? -1 : only_data ? fdatasync(fd) : fsync(fd));
}

void sync_directory(fuse_req_t req, fuse_ino_t id, int, fuse_file_info*) {
  Descriptor directory(open(node_of(req, id).proc_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  reply_status(req, directory ? fsync(directory.get()) : -1);
}

void allocate(fuse_req_t req, fuse_ino_t id, int mode, off_t offset, off_t length, fuse_file_info* file) {
  int fd = content_of(req, id, file);
  reply_status(req, fd < 0 ? -1 : fallocate(fd, mode, offset, length));
}

void seek(fuse_req_t req, fuse_ino_t id, off_t offset, int whence, fuse_file_info* file) {
  int fd = content_of(req, id, file);
  off_t found = fd < 0 ? -1 : lseek(fd, offset, whence);
  if (found < 0) fuse_reply_err(req, errno);
  else fuse_reply_lseek(req, found);
}

// Directories: a listing is read at once, at its start, and kept while the kernel asks for the rest.
std::unique_ptr<Listing> read_listing(Node& node) {
  std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(node.proc_path().c_str()), closedir);
  if (!directory) return nullptr;
  auto listing = std::make_unique<Listing>();
  while (dirent* found = readdir(directory.get())) {
    Listing::Item item{found->d_name, {}};
    item.attributes.st_ino = found->d_ino;
    item.attributes.st_mode = static_cast<mode_t>(DTTOIF(found->d_type));
    listing->items.push_back(std::move(item));
  }
  return listing;
}

void open_directory(fuse_req_t req, fuse_ino_t id, fuse_file_info* file) {
  if (world(req).stateless) {
    fuse_reply_err(req, ENOSYS);
    return;
  }
  auto listing = read_listing(node_of(req, id));
  if (!listing) {
    fuse_reply_err(req, errno);
    return;
  }
  file->fh = reinterpret_cast<uint64_t>(listing.get());
  file->keep_cache = 1;
  file->cache_readdir = 1;
  if (fuse_reply_open(req, file) == 0) static_cast<void>(listing.release());
}

void release_directory(fuse_req_t req, fuse_ino_t, fuse_file_info* file) {
  delete reinterpret_cast<Listing*>(file->fh);
  fuse_reply_err(req, 0);
}

void list(fuse_req_t req, fuse_ino_t id, size_t size, off_t offset, fuse_file_info* file, bool plus) {
  Node& node = node_of(req, id);
  // Without an open there is nowhere to keep it; the few directories that take several messages are read again.
  auto own = world(req).stateless ? read_listing(node) : nullptr;
  const Listing* listing = world(req).stateless ? own.get() : reinterpret_cast<Listing*>(file->fh);
  if (!listing) {
    fuse_reply_err(req, errno);
    return;
  }
  std::vector<char> buffer(size);
  size_t used = 0;
  for (auto i = static_cast<size_t>(offset); i < listing->items.size(); ++i) {
    const auto& item = listing->items[i];
    const char* name = item.name.c_str();
    auto next = static_cast<off_t>(i + 1);
    fuse_entry_param entry{};
    entry.attr = item.attributes;
    entry.entry_timeout = entry.attr_timeout = kEndless;
    bool dots = item.name == "." || item.name == "..";
    if (plus && !dots && world(req).nodes.look_up(node, name, entry) != 0) continue;
    size_t needed = plus ? fuse_add_direntry_plus(req, buffer.data() + used, size - used, name, &entry, next)
                         : fuse_add_direntry(req, buffer.data() + used, size - used, name, &entry.attr, next);
    if (needed > size - used) {
      if (entry.ino) world(req).nodes.forget(entry.ino, 1);
      break;
    }
    used += needed;
  }
  fuse_reply_buf(req, buffer.data(), used);
}

void read_directory(fuse_req_t req, fuse_ino_t id, size_t size, off_t offset, fuse_file_info* file) {
  list(req, id, size, offset, file, false);
}

void read_directory_plus(fuse_req_t req, fuse_ino_t id, size_t size, off_t offset, fuse_file_info* file) {
  list(req, id, size, offset, file, true);
}

void file_system_status(fuse_req_t req, fuse_ino_t id) {
  struct statvfs status {};
  if (fstatvfs(node_of(req, id).place.get(), &status) != 0) fuse_reply_err(req, errno);
  else fuse_reply_statfs(req, &status);
}

fuse_lowlevel_ops operations(bool stateless) {
  fuse_lowlevel_ops table{};
  table.init = initialise;
  table.lookup = look_up;
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
  table.open = open_file;
  table.flush = flush_file;
  table.read = read_file;
  table.write_buf = write_file;
  table.fsync = sync_file;
  table.fsyncdir = sync_directory;
  table.fallocate = allocate;
  table.lseek = seek;
  table.opendir = open_directory;
  table.readdir = read_directory;
  table.readdirplus = read_directory_plus;
  table.statfs = file_system_status;
  if (!stateless) {
    table.create = create_file;
    table.release = release_file;
    table.releasedir = release_directory;
  }
  return table;
}

std::atomic<std::uint64_t>* counter_in(const char* path) {
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0 || ftruncate(fd, sizeof(std::uint64_t)) != 0) return nullptr;
  void* place = mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return place == MAP_FAILED ? nullptr : new (place) std::atomic<std::uint64_t>(0);
}

void serve(fuse_session* session, std::atomic<std::uint64_t>& count) {
  fuse_buf buffer{};
  while (!fuse_session_exited(session)) {
    int got = fuse_session_receive_buf(session, &buffer);
    if (got == -EINTR) continue;
    if (got <= 0) break;
    count.fetch_add(1, std::memory_order_relaxed);
    fuse_session_process_buf(session, &buffer);
  }
  fuse_session_exit(session);
  std::free(buffer.mem);
}

int usage() {
  std::fprintf(stderr,
               "usage: bench-passthrough [-o OPTION,…] [--stateless] [--writeback] [--threads N] [--count FILE] "
               "SOURCE DIR\n");
  return 2;
}

int run(int argc, char** argv) {
  std::string options = "fsname=bench,subtype=passthrough,default_permissions";
  bool stateless = false, writeback = false;
  int threads = 1;
  std::vector<char*> places;
  std::atomic<std::uint64_t> uncounted = 0;
  std::atomic<std::uint64_t>* count = &uncounted;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    bool has_value = i + 1 < argc;
    if (word == "--stateless") stateless = true;
    else if (word == "--writeback") writeback = true;
    else if (word == "--threads" && has_value) threads = std::atoi(argv[++i]);
    else if (word == "-o" && has_value) options += std::string(",") + argv[++i];
    else if (word == "--count" && has_value) count = counter_in(argv[++i]);
    else if (word.starts_with("-")) return usage();
    else places.push_back(argv[i]);
  }
  if (places.size() != 2 || threads < 1 || !count) return usage();

  // Each node that the kernel knows is a descriptor.
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  umask(0);

  World world(places[0], stateless, writeback);
  fuse_lowlevel_ops table = operations(stateless);
  std::string program = argv[0], flag = "-o";
  char* words[] = {program.data(), flag.data(), options.data()};
  fuse_args arguments = FUSE_ARGS_INIT(3, words);
  fuse_session* session = fuse_session_new(&arguments, &table, sizeof table, &world);
  if (!session) return 1;
  if (fuse_set_signal_handlers(session) != 0 || fuse_session_mount(session, places[1]) != 0) return 1;
  {
    std::vector<std::jthread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back([&] { serve(session, *count); });
    serve(session, *count);
  }
  fuse_session_unmount(session);
  fuse_remove_signal_handlers(session);
  fuse_session_destroy(session);
  fuse_opt_free_args(&arguments);
  return 0;
}

}  // namespace
}  // namespace playfs::bench

int main(int argc, char** argv) { return playfs::bench::run(argc, argv); }
