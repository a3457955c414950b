// Replaces libc's file calls: those for paths below Disks::kRoot, and for their descriptors, are carried out in memory,
// all others as usual. The executable has to export these, so that libraries (SQLite, libstdc++) find them too. Each
// call has two names, which the headers would merge into one.
#undef _FILE_OFFSET_BITS
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utime.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "whole/disk.h"
#include "whole/faults.h"
#include "whole/world.h"

using namespace playfs::sim;

namespace {

constexpr int kFirst = 1 << 24;

struct Open {
  DiskFilePtr file;
  off_t position = 0;
  std::string path;  ///< as opened
};

std::vector<Open>& table() {
  static std::vector<Open> descriptors;
  return descriptors;
}
std::vector<int>& unused() {
  static std::vector<int> descriptors;
  return descriptors;
}

struct Listing {
  int descriptor = -1;
  std::vector<std::pair<std::string, DiskFilePtr>> entries;
  std::size_t next = 0;
  dirent64 entry{};
};
std::set<const void*>& listings() {
  static std::set<const void*> all;
  return all;
}
std::set<const void*>& mappings() {
  static std::set<const void*> all;
  return all;
}

bool is_ours(int fd) { return fd >= kFirst; }
bool is_ours(const char* path) {
  return std::strncmp(path, Disks::kRoot.data(), Disks::kRoot.size()) == 0 &&
         (path[Disks::kRoot.size()] == '/' || path[Disks::kRoot.size()] == '\0');
}

Open* opened(int fd) {
  auto index = static_cast<std::size_t>(fd - kFirst);
  if (index >= table().size() || !table()[index].file) return nullptr;
  return &table()[index];
}

int failed(int error) {
  errno = error;
  return -1;
}

int descriptor_of(DiskFilePtr file, std::string path) {
  if (unused().empty()) {
    table().push_back({std::move(file), 0, std::move(path)});
    return kFirst + static_cast<int>(table().size()) - 1;
  }
  int fd = unused().back();
  unused().pop_back();
  table()[static_cast<std::size_t>(fd - kFirst)] = {std::move(file), 0, std::move(path)};
  return fd;
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

/// A change is about to be made: the process may be killed here.
void moment() {
  if (World* world = World::running()) world->moment();
}

/// Where a name is.
struct Name {
  DiskFilePtr directory;
  std::string name;
};

Name name_of(int directory, const char* path) {
  std::string_view rest = path;
  while (rest.size() > 1 && rest.ends_with('/')) rest.remove_suffix(1);
  auto slash = rest.rfind('/');
  if (rest.starts_with('/')) {
    if (rest.size() <= Disks::kRoot.size()) return {nullptr, {}};
    return {Disks::all().find(rest.substr(0, slash)), std::string(rest.substr(slash + 1))};
  }
  Open* at = opened(directory);
  if (!at) return {nullptr, {}};
  DiskFilePtr above = at->file;
  while ((slash = rest.find('/')) != std::string_view::npos) {
    auto next = above->names.find(std::string(rest.substr(0, slash)));
    if (next == above->names.end()) return {nullptr, {}};
    above = next->second;
    rest.remove_prefix(slash + 1);
  }
  return {above, std::string(rest)};
}

DiskFilePtr file_at(int directory, const char* path) {
  if (is_ours(path)) return Disks::all().find(path);
  Name place = name_of(directory, path);
  if (!place.directory) return nullptr;
  if (place.name == "." || place.name.empty()) return place.directory;
  auto found = place.directory->names.find(place.name);
  return found == place.directory->names.end() ? nullptr : found->second;
}

bool concerns_us(int directory, const char* path) {
  return path[0] == '/' ? is_ours(path) : directory != AT_FDCWD && is_ours(directory);
}

int open_here(int directory, const char* path, int flags, mode_t mode) {
  DiskFilePtr file = file_at(directory, path);
  if (file && (flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) return failed(EEXIST);
  if (file && file->is_directory && (flags & O_ACCMODE) != O_RDONLY) return failed(EISDIR);
  if (file && !file->is_directory && (flags & O_DIRECTORY) != 0) return failed(ENOTDIR);
  if (!file) {
    Name place = name_of(directory, path);
    if ((flags & O_CREAT) == 0 || !place.directory) return failed(ENOENT);
    moment();
    file = make_disk_file(false, mode, place.directory->forgets);
    place.directory->put(place.name, file);
  }
  if ((flags & O_TRUNC) != 0 && file->size > 0) {
    moment();
    file->resize(0);
  }
  return descriptor_of(std::move(file), path);
}

int stat_here(const DiskFilePtr& file, struct stat* out) {
  if (!file) return failed(ENOENT);
  *out = {};
  out->st_dev = 77;
  out->st_ino = file->number;
  out->st_mode = (file->is_directory ? S_IFDIR : S_IFREG) | file->mode;
  out->st_nlink = 1;
  out->st_uid = geteuid();
  out->st_gid = getegid();
  out->st_size = static_cast<off_t>(file->size);
  out->st_blksize = 4096;
  out->st_blocks = static_cast<blkcnt_t>((file->size + 511) / 512);
  out->st_mtim = out->st_ctim = file->modified;
  out->st_atim = file->accessed;
  return 0;
}

int remove_here(int directory, const char* path, bool a_directory) {
  DiskFilePtr file = file_at(directory, path);
  Name place = name_of(directory, path);
  if (!file || !place.directory) return failed(ENOENT);
  if (file->is_directory != a_directory) return failed(a_directory ? ENOTDIR : EISDIR);
  if (!file->names.empty()) return failed(ENOTEMPTY);
  moment();
  place.directory->remove(place.name);
  return 0;
}

int rename_here(int from, const char* path, int to, const char* new_path) {
  DiskFilePtr file = file_at(from, path);
  Name old_place = name_of(from, path), place = name_of(to, new_path);
  if (!file || !old_place.directory || !place.directory) return failed(ENOENT);
  moment();
  if (old_place.directory != place.directory) {
    old_place.directory->remove(old_place.name);
    place.directory->put(place.name, file);
    return 0;
  }
  DiskFile& directory = *place.directory;
  if (directory.forgets) directory.renamings.push_back({old_place.name, place.name, file});
  directory.names.erase(old_place.name);
  directory.names[place.name] = file;
  return 0;
}

int make_directory_here(const char* path, mode_t mode) {
  if (Disks::all().find(path)) return failed(EEXIST);
  Name place = name_of(AT_FDCWD, path);
  if (!place.directory) return failed(ENOENT);
  moment();
  place.directory->put(place.name, make_disk_file(true, mode, place.directory->forgets));
  return 0;
}

ssize_t read_here(const DiskFile& file, void* out, std::size_t size, std::size_t at) {
  if (at >= file.size) return 0;
  size = std::min(size, file.size - at);
  std::size_t stored = at < file.bytes.size() ? std::min(size, file.bytes.size() - at) : 0;
  if (stored > 0) std::memcpy(out, file.bytes.data() + at, stored);
  std::memset(static_cast<char*>(out) + stored, 0, size - stored);
  return static_cast<ssize_t>(size);
}

bool is_of_log(const std::string& path) { return path.find("operations") != std::string::npos; }
/// Spool files are opened by number.
bool is_of_spool(const std::string& path) {
  return path.find("spool/") != std::string::npos || path.find('/') == std::string::npos;
}

/// Whether a planted fault drops this sync.
bool is_forgotten(const Open& open) {
  const std::string& path = open.path;
  switch (planted) {
    case Fault::bytes_not_synced: return is_of_spool(path);
    case Fault::journal_not_synced: return path.find("publish.db") != std::string::npos;
    case Fault::log_not_synced: return is_of_log(path);
    case Fault::names_not_synced: return open.file->is_directory;
    default: return false;
  }
}

int sync_here(int fd) {
  Open* open = opened(fd);
  if (!open) return failed(EBADF);
  moment();
  DiskFile& file = *open->file;
  const bool may_fail = file.forgets && !file.is_directory && (is_of_log(open->path) || is_of_spool(open->path));
  if (auto owner = World::owner(); owner && may_fail && owner->sync_fails()) {
    file.fail_to_sync();
    return planted == Fault::sync_error_forgotten ? 0 : failed(EIO);
  }
  if (!is_forgotten(*open)) file.sync();
  return 0;
}

void sync_all(DiskFile& file) {
  file.sync();
  for (const auto& [name, below] : file.names) sync_all(*below);
}

DIR* list_here(int fd) {
  Open* open = opened(fd);
  if (!open || !open->file->is_directory) {
    failed(ENOTDIR);
    return nullptr;
  }
  auto* listing = new Listing;
  listing->descriptor = fd;
  listing->entries.assign(open->file->names.begin(), open->file->names.end());
  listings().insert(listing);
  return reinterpret_cast<DIR*>(listing);
}

}  // namespace

#define REAL(name, ...)                       \
  (*[] {                                      \
    static auto* f = real<__VA_ARGS__>(name); \
    return f;                                 \
  }())

extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if (is_ours(path)) return open_here(AT_FDCWD, path, flags, mode);
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

int openat(int directory, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if (concerns_us(directory, path)) return open_here(directory, path, flags, mode);
  return static_cast<int>(syscall(SYS_openat, directory, path, flags, mode));
}

int mkostemp(char* path, int flags) {
  char* name = path + std::strlen(path) - 6;
  do {
    for (int i = 0; i < 6; ++i) name[i] = static_cast<char>('a' + rand() % 26);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | flags, 0600);
    if (fd >= 0 || errno != EEXIST) return fd;
  } while (true);
}
int mkstemp(char* path) { return mkostemp(path, 0); }

int close(int fd) {
  if (!is_ours(fd)) return static_cast<int>(syscall(SYS_close, fd));
  Open* open = opened(fd);
  if (!open) return failed(EBADF);
  *open = {};
  unused().push_back(fd);
  return 0;
}

ssize_t read(int fd, void* out, size_t size) {
  if (!is_ours(fd)) return syscall(SYS_read, fd, out, size);
  Open* open = opened(fd);
  if (!open) return failed(EBADF);
  ssize_t done = read_here(*open->file, out, size, static_cast<std::size_t>(open->position));
  open->position += done;
  return done;
}

ssize_t pread(int fd, void* out, size_t size, off_t at) {
  if (!is_ours(fd)) return syscall(SYS_pread64, fd, out, size, at);
  Open* open = opened(fd);
  if (!open) return failed(EBADF);
  return read_here(*open->file, out, size, static_cast<std::size_t>(at));
}

ssize_t write(int fd, const void* data, size_t size) {
  if (!is_ours(fd)) return syscall(SYS_write, fd, data, size);
  Open* open = opened(fd);
  if (!open) return failed(EBADF);
  moment();
  open->file->write(static_cast<std::size_t>(open->position), {static_cast<const char*>(data), size});
  open->position += static_cast<off_t>(size);
  return static_cast<ssize_t>(size);
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  if (!is_ours(fd)) return syscall(SYS_pwrite64, fd, data, size, at);
  Open* open = opened(fd);
  if (!open) return failed(EBADF);
  moment();
  open->file->write(static_cast<std::size_t>(at), {static_cast<const char*>(data), size});
  return static_cast<ssize_t>(size);
}

off_t lseek(int fd, off_t to, int whence) noexcept {
  if (!is_ours(fd)) return syscall(SYS_lseek, fd, to, whence);
  Open* open = opened(fd);
  if (!open) return failed(EBADF);
  if (whence == SEEK_CUR) to += open->position;
  else if (whence == SEEK_END) to += static_cast<off_t>(open->file->size);
  else if (whence != SEEK_SET) return failed(EINVAL);
  return open->position = to;
}

int ftruncate(int fd, off_t size) noexcept {
  if (!is_ours(fd)) return static_cast<int>(syscall(SYS_ftruncate, fd, size));
  Open* open = opened(fd);
  if (!open) return failed(EBADF);
  moment();
  open->file->resize(static_cast<std::size_t>(size));
  return 0;
}

int fallocate(int fd, int mode, off_t offset, off_t length) {
  if (!is_ours(fd)) return static_cast<int>(syscall(SYS_fallocate, fd, mode, offset, length));
  Open* open = opened(fd);
  if (!open) return failed(EBADF);
  moment();
  auto from = static_cast<std::size_t>(offset), end = static_cast<std::size_t>(offset + length);
  if ((mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0) {
    end = std::min(end, open->file->size);
    if (end > from) open->file->write(from, std::string(end - from, '\0'));
  } else if ((mode & FALLOC_FL_KEEP_SIZE) == 0 && end > open->file->size) {
    open->file->resize(end);
  }
  return 0;
}

int posix_fallocate(int fd, off_t offset, off_t length) {
  if (is_ours(fd)) return fallocate(fd, 0, offset, length) == 0 ? 0 : errno;
  return syscall(SYS_fallocate, fd, 0, offset, length) == 0 ? 0 : errno;
}

int fsync(int fd) { return is_ours(fd) ? sync_here(fd) : static_cast<int>(syscall(SYS_fsync, fd)); }
int fdatasync(int fd) { return is_ours(fd) ? sync_here(fd) : static_cast<int>(syscall(SYS_fdatasync, fd)); }
int syncfs(int fd) noexcept {
  if (!is_ours(fd)) return static_cast<int>(syscall(SYS_syncfs, fd));
  Open* open = opened(fd);
  if (!open) return failed(EBADF);
  moment();
  sync_all(*open->file);
  return 0;
}

int stat(const char* path, struct stat* out) noexcept {
  if (is_ours(path)) return stat_here(Disks::all().find(path), out);
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, out, 0));
}
int lstat(const char* path, struct stat* out) noexcept {
  if (is_ours(path)) return stat_here(Disks::all().find(path), out);
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW));
}
int fstat(int fd, struct stat* out) noexcept {
  if (!is_ours(fd)) return static_cast<int>(syscall(SYS_newfstatat, fd, "", out, AT_EMPTY_PATH));
  Open* open = opened(fd);
  return open ? stat_here(open->file, out) : failed(EBADF);
}
int fstatat(int directory, const char* path, struct stat* out, int flags) noexcept {
  if (concerns_us(directory, path)) return stat_here(file_at(directory, path), out);
  return static_cast<int>(syscall(SYS_newfstatat, directory, path, out, flags));
}

int access(const char* path, int mode) noexcept {
  if (!is_ours(path)) return static_cast<int>(syscall(SYS_access, path, mode));
  return Disks::all().find(path) ? 0 : failed(ENOENT);
}

int unlink(const char* path) noexcept {
  if (is_ours(path)) return remove_here(AT_FDCWD, path, false);
  return static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}
int unlinkat(int directory, const char* path, int flags) noexcept {
  if (concerns_us(directory, path)) return remove_here(directory, path, (flags & AT_REMOVEDIR) != 0);
  return static_cast<int>(syscall(SYS_unlinkat, directory, path, flags));
}
int rmdir(const char* path) noexcept {
  if (is_ours(path)) return remove_here(AT_FDCWD, path, true);
  return static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR));
}

int rename(const char* path, const char* new_path) noexcept {
  if (is_ours(path)) return rename_here(AT_FDCWD, path, AT_FDCWD, new_path);
  return static_cast<int>(syscall(SYS_renameat, AT_FDCWD, path, AT_FDCWD, new_path));
}
int renameat(int from, const char* path, int to, const char* new_path) noexcept {
  if (concerns_us(from, path)) return rename_here(from, path, to, new_path);
  return static_cast<int>(syscall(SYS_renameat, from, path, to, new_path));
}

int mkdir(const char* path, mode_t mode) noexcept {
  if (is_ours(path)) return make_directory_here(path, mode);
  return static_cast<int>(syscall(SYS_mkdir, path, mode));
}

int chmod(const char* path, mode_t mode) noexcept {
  if (!is_ours(path)) return static_cast<int>(syscall(SYS_chmod, path, mode));
  auto file = Disks::all().find(path);
  if (!file) return failed(ENOENT);
  file->mode = mode;
  return 0;
}
int fchmod(int fd, mode_t mode) noexcept {
  if (!is_ours(fd)) return static_cast<int>(syscall(SYS_fchmod, fd, mode));
  Open* open = opened(fd);
  if (!open) return failed(EBADF);
  open->file->mode = mode;
  return 0;
}
int fchown(int fd, uid_t uid, gid_t gid) noexcept {
  return is_ours(fd) ? 0 : static_cast<int>(syscall(SYS_fchown, fd, uid, gid));
}

int futimens(int fd, const timespec times[2]) noexcept {
  if (!is_ours(fd)) return static_cast<int>(syscall(SYS_utimensat, fd, nullptr, times, 0));
  Open* open = opened(fd);
  if (!open) return failed(EBADF);
  for (int i = 0; i < 2; ++i) {
    timespec& time = i == 0 ? open->file->accessed : open->file->modified;
    if (!times || times[i].tv_nsec == UTIME_NOW) clock_gettime(CLOCK_REALTIME, &time);
    else if (times[i].tv_nsec != UTIME_OMIT) time = times[i];
  }
  return 0;
}

int flock(int fd, int operation) noexcept {
  return is_ours(fd) ? 0 : static_cast<int>(syscall(SYS_flock, fd, operation));
}

/// There is only one user, so every lock is granted.
int fcntl(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  if (!is_ours(fd)) return static_cast<int>(syscall(SYS_fcntl, fd, command, argument));
  Open* open = opened(fd);
  if (!open) return failed(EBADF);
  if (command == F_GETLK) static_cast<struct flock*>(argument)->l_type = F_UNLCK;
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) return descriptor_of(open->file, open->path);
  return 0;
}

int fstatvfs(int fd, struct statvfs* out) noexcept {
  if (!is_ours(fd)) return REAL("fstatvfs", int(int, struct statvfs*))(fd, out);
  *out = {};
  out->f_bsize = out->f_frsize = 4096;
  out->f_blocks = out->f_bfree = out->f_bavail = 1 << 28;
  out->f_files = out->f_ffree = out->f_favail = 1 << 28;
  return 0;
}

/// Forces copies to go through a buffer.
ssize_t copy_file_range(int, off64_t*, int, off64_t*, size_t, unsigned) { return failed(EXDEV); }

DIR* opendir(const char* path) {
  if (!is_ours(path)) return REAL("opendir", DIR * (const char*))(path);
  int fd = open_here(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
  return fd < 0 ? nullptr : list_here(fd);
}
DIR* fdopendir(int fd) { return is_ours(fd) ? list_here(fd) : REAL("fdopendir", DIR * (int))(fd); }
dirent64* readdir64(DIR* directory) {
  if (!listings().contains(directory)) return REAL("readdir64", dirent64 * (DIR*))(directory);
  auto& listing = *reinterpret_cast<Listing*>(directory);
  if (listing.next == listing.entries.size()) return nullptr;
  const auto& [name, file] = listing.entries[listing.next++];
  listing.entry = {};
  listing.entry.d_ino = file->number;
  listing.entry.d_type = file->is_directory ? DT_DIR : DT_REG;
  std::strncpy(listing.entry.d_name, name.c_str(), sizeof listing.entry.d_name - 1);
  return &listing.entry;
}
dirent* readdir(DIR* directory) { return reinterpret_cast<dirent*>(readdir64(directory)); }
int closedir(DIR* directory) {
  if (listings().erase(directory) == 0) return REAL("closedir", int(DIR*))(directory);
  auto* listing = reinterpret_cast<Listing*>(directory);
  int fd = listing->descriptor;
  delete listing;
  return close(fd);
}
int dirfd(DIR* directory) noexcept {
  if (!listings().contains(directory)) return REAL("dirfd", int(DIR*))(directory);
  return reinterpret_cast<Listing*>(directory)->descriptor;
}

void* mmap(void* at, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  if (fd < 0 || !is_ours(fd))
    return reinterpret_cast<void*>(syscall(SYS_mmap, at, size, protection, flags, fd, offset));
  Open* open = opened(fd);
  auto& mapped = open->file->mapped[offset];
  if (!mapped) mapped = std::make_unique<char[]>(size);
  mappings().insert(mapped.get());
  return mapped.get();
}
int munmap(void* at, size_t size) noexcept {
  return mappings().erase(at) > 0 ? 0 : static_cast<int>(syscall(SYS_munmap, at, size));
}

}  // extern "C"

// Offsets have 64 bits here anyway.
#define BY_BOTH_NAMES(name) asm(".globl " #name "64\n.set " #name "64, " #name)
BY_BOTH_NAMES(open);
BY_BOTH_NAMES(openat);
BY_BOTH_NAMES(mkostemp);
BY_BOTH_NAMES(mkstemp);
BY_BOTH_NAMES(pread);
BY_BOTH_NAMES(pwrite);
BY_BOTH_NAMES(lseek);
BY_BOTH_NAMES(ftruncate);
BY_BOTH_NAMES(fallocate);
BY_BOTH_NAMES(posix_fallocate);
BY_BOTH_NAMES(stat);
BY_BOTH_NAMES(lstat);
BY_BOTH_NAMES(fstat);
BY_BOTH_NAMES(fstatat);
BY_BOTH_NAMES(fcntl);
BY_BOTH_NAMES(fstatvfs);
BY_BOTH_NAMES(mmap);
