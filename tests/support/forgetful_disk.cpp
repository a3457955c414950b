#include "support/forgetful_disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

namespace playfs::test {
namespace {

using FileNumber = std::size_t;

struct Event {
  enum class Kind { make, remove, rename, write, resize, sync, sync_names } kind;
  FileNumber file = 0;
  std::string name;  ///< of make, remove and rename; the directory for sync_names
  std::uint64_t offset = 0;
  std::string bytes;  ///< of write; the new name for rename, in the same directory
};

struct Recording {
  std::string directory;
  std::map<std::string, std::string> begin;  ///< names and bytes that are already durable
  std::map<std::string, FileNumber> names;
  std::map<ino_t, FileNumber> numbers;
  FileNumber next = 1;
  std::vector<Event> events;
  bool active = false;
};
Recording* recording = nullptr;

std::string path_of(int fd) {
  char target[4096];
  ssize_t size = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target, sizeof target);
  return size < 0 ? std::string() : std::string(target, static_cast<std::size_t>(size));
}

/// Relative to the directory; nullopt for other paths. SQLite's shared memory, the reserve and the lock hold nothing
/// that a restart needs.
std::optional<std::string> inside(const std::string& path) {
  if (!recording || !recording->active || !path.starts_with(recording->directory)) return std::nullopt;
  if (path.size() == recording->directory.size()) return std::string();
  std::string name = path.substr(recording->directory.size() + 1);
  if (name.ends_with("-shm") || name == "reserve" || name == "lock") return std::nullopt;
  return name;
}

std::optional<std::string> inside(int directory, const char* path) {
  if (!recording || !recording->active) return std::nullopt;
  if (path[0] == '/' || directory == AT_FDCWD) return inside(path);
  return inside(path_of(directory) + "/" + path);
}

std::optional<FileNumber> number_of(int fd) {
  if (!recording || !recording->active) return std::nullopt;
  struct stat found {};
  if (fstat(fd, &found) != 0) return std::nullopt;
  auto known = recording->numbers.find(found.st_ino);
  return known == recording->numbers.end() ? std::nullopt : std::optional(known->second);
}

void note(Event event) { recording->events.push_back(std::move(event)); }

int opened(int directory, const char* path, int flags, mode_t mode) {
  auto name = inside(directory, path);
  bool is_new = name && (flags & O_CREAT) != 0 && !recording->names.contains(*name);
  auto fd = static_cast<int>(syscall(SYS_openat, directory, path, flags, mode));
  if (fd < 0 || !name) return fd;
  if (is_new) {
    struct stat found {};
    fstat(fd, &found);
    FileNumber number = recording->next++;
    recording->names[*name] = recording->numbers[found.st_ino] = number;
    note({Event::Kind::make, number, *name, 0, {}});
  }
  if ((flags & O_TRUNC) != 0) note({Event::Kind::resize, recording->names[*name], {}, 0, {}});
  return fd;
}

int removed(int directory, const char* path, int flags) {
  auto name = inside(directory, path);
  auto result = static_cast<int>(syscall(SYS_unlinkat, directory, path, flags));
  if (result == 0 && name) {
    auto known = recording->names.find(*name);
    if (known != recording->names.end()) {
      note({Event::Kind::remove, known->second, *name, 0, {}});
      // The disk may reuse its inode number for a file that is not recorded.
      std::erase_if(recording->numbers, [&](const auto& entry) { return entry.second == known->second; });
      recording->names.erase(known);
    }
  }
  return result;
}

int renamed(int from, const char* path, int to, const char* new_path) {
  auto name = inside(from, path), new_name = inside(to, new_path);
  auto result = static_cast<int>(syscall(SYS_renameat, from, path, to, new_path));
  if (result != 0 || !name || !new_name) return result;
  auto known = recording->names.find(*name);
  if (known == recording->names.end()) return result;
  const FileNumber number = known->second;
  recording->names.erase(known);
  recording->names[*new_name] = number;
  note({Event::Kind::rename, number, *name, 0, *new_name});
  return result;
}

int synced(int fd) {
  auto name = recording && recording->active ? inside(path_of(fd)) : std::nullopt;
  struct stat found {};
  if (name && fstat(fd, &found) == 0 && S_ISDIR(found.st_mode)) {
    note({Event::Kind::sync_names, 0, *name, 0, {}});
    return 0;
  }
  if (auto number = number_of(fd)) {
    note({Event::Kind::sync, *number, {}, 0, {}});
    return 0;
  }
  if (recording) return 0;
  return static_cast<int>(syscall(SYS_fsync, fd));
}

void put(std::string& bytes, std::uint64_t offset, std::string_view data) {
  if (bytes.size() < offset + data.size()) bytes.resize(offset + data.size());
  bytes.replace(offset, data.size(), data);
}

std::string directory_of(const std::string& name) {
  auto slash = name.rfind('/');
  return slash == std::string::npos ? std::string() : name.substr(0, slash);
}

}  // namespace

ForgetfulDisk::ForgetfulDisk(std::string directory) {
  recording = new Recording;
  recording->directory = std::move(directory);
  for (const auto& item : std::filesystem::recursive_directory_iterator(recording->directory)) {
    if (!item.is_regular_file()) continue;
    std::string name = item.path().string().substr(recording->directory.size() + 1);
    std::ostringstream bytes;
    bytes << std::ifstream(item.path()).rdbuf();
    recording->begin[name] = bytes.str();
    struct stat found {};
    stat(item.path().c_str(), &found);
    recording->names[name] = recording->numbers[found.st_ino] = recording->next++;
  }
  for (const auto& [name, number] : recording->names) note({Event::Kind::make, number, name, 0, {}});
  for (const auto& [name, bytes] : recording->begin) note({Event::Kind::write, recording->names[name], {}, 0, bytes});
  for (const auto& [name, number] : recording->names) {
    note({Event::Kind::sync, number, {}, 0, {}});
    note({Event::Kind::sync_names, 0, directory_of(name), 0, {}});
  }
  recording->active = true;
}

ForgetfulDisk::~ForgetfulDisk() { delete std::exchange(recording, nullptr); }

std::size_t ForgetfulDisk::events() const { return recording->events.size(); }
void ForgetfulDisk::stop() { recording->active = false; }

std::vector<std::size_t> ForgetfulDisk::cuts(std::size_t first) const {
  const auto& events = recording->events;
  auto is_sync = [](const Event& event) {
    return event.kind == Event::Kind::sync || event.kind == Event::Kind::sync_names;
  };
  std::vector<std::size_t> cuts;
  for (std::size_t i = first; i < events.size(); ++i) {
    if (is_sync(events[i]) && (i == first || !is_sync(events[i - 1]))) cuts.push_back(i);
  }
  cuts.push_back(events.size());
  return cuts;
}

void ForgetfulDisk::lay_out(std::size_t count, std::mt19937_64& random, const std::string& target) const {
  const auto& events = recording->events;
  std::map<FileNumber, std::size_t> file_safe;
  std::map<std::string, std::size_t> names_safe;
  for (std::size_t i = 0; i < count; ++i) {
    if (events[i].kind == Event::Kind::sync) file_safe[events[i].file] = i;
    if (events[i].kind == Event::Kind::sync_names) names_safe[events[i].name] = i;
  }
  // The percentage of unsynced changes that this power loss keeps.
  const unsigned luck = std::array{0U, 100U, 50U, 90U}[random() % 4];
  std::map<std::string, std::size_t> names_until;
  std::map<FileNumber, std::string> files;
  std::map<std::string, FileNumber> names;
  for (std::size_t i = 0; i < count; ++i) {
    const Event& event = events[i];
    if (event.kind == Event::Kind::make || event.kind == Event::Kind::remove || event.kind == Event::Kind::rename) {
      std::string directory = directory_of(event.name);
      if (!names_until.contains(directory)) {
        std::size_t safe = names_safe.contains(directory) ? names_safe[directory] : 0;
        names_until[directory] = luck == 100 ? count : luck == 0 ? safe : safe + random() % (count - safe + 1);
      }
      if (i > names_until[directory]) continue;
      if (event.kind == Event::Kind::make) names[event.name] = event.file;
      else names.erase(event.name);
      if (event.kind == Event::Kind::rename) names[event.bytes] = event.file;
    } else if (event.kind == Event::Kind::write || event.kind == Event::Kind::resize) {
      bool is_safe = file_safe.contains(event.file) && i < file_safe[event.file];
      if (!is_safe && random() % 100 >= luck) continue;
      if (event.kind == Event::Kind::resize) files[event.file].resize(event.offset);
      else put(files[event.file], event.offset, event.bytes);
    }
  }
  std::filesystem::remove_all(target);
  std::filesystem::create_directories(target + "/spool");
  for (const auto& [name, number] : names) std::ofstream(target + "/" + name) << files[number];
}

}  // namespace playfs::test

// Replaces libc's calls for the whole process.
using namespace playfs::test;
extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return opened(AT_FDCWD, path, flags, mode);
}

int openat(int directory, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return opened(directory, path, flags, mode);
}

int unlink(const char* path) noexcept { return removed(AT_FDCWD, path, 0); }
int unlinkat(int directory, const char* path, int flags) noexcept { return removed(directory, path, flags); }

int rename(const char* path, const char* new_path) noexcept { return renamed(AT_FDCWD, path, AT_FDCWD, new_path); }
int renameat(int from, const char* path, int to, const char* new_path) noexcept {
  return renamed(from, path, to, new_path);
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  ssize_t done = syscall(SYS_pwrite64, fd, bytes, size, offset);
  if (auto number = number_of(fd); done > 0 && number)
    note({Event::Kind::write,
          *number,
          {},
          static_cast<std::uint64_t>(offset),
          std::string(static_cast<const char*>(bytes), static_cast<std::size_t>(done))});
  return done;
}

// Only for the disk's own files; all other writes go straight to the kernel.
ssize_t write(int fd, const void* bytes, size_t size) {
  if (!number_of(fd)) return syscall(SYS_write, fd, bytes, size);
  const auto at = static_cast<off_t>(syscall(SYS_lseek, fd, 0, SEEK_CUR));
  const ssize_t done = pwrite(fd, bytes, size, at);
  if (done > 0) syscall(SYS_lseek, fd, at + done, SEEK_SET);
  return done;
}

// libc's own would bypass open() here.
int mkostemp(char* path, int flags) {
  char* name = path + std::strlen(path) - 6;
  for (;;) {
    for (int i = 0; i < 6; ++i) name[i] = static_cast<char>('a' + rand() % 26);
    int fd = opened(AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL | flags, 0600);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
}

int ftruncate(int fd, off_t size) noexcept {
  auto result = static_cast<int>(syscall(SYS_ftruncate, fd, size));
  if (auto number = number_of(fd); result == 0 && number)
    note({Event::Kind::resize, *number, {}, static_cast<std::uint64_t>(size), {}});
  return result;
}

int fallocate(int fd, int mode, off_t offset, off_t length) {
  auto result = static_cast<int>(syscall(SYS_fallocate, fd, mode, offset, length));
  auto number = number_of(fd);
  if (result != 0 || !number) return result;
  if ((mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0) {
    struct stat now {};
    fstat(fd, &now);
    auto end = std::min<off_t>(offset + length, now.st_size);
    if (end > offset)
      note({Event::Kind::write,
            *number,
            {},
            static_cast<std::uint64_t>(offset),
            std::string(static_cast<std::size_t>(end - offset), '\0')});
  }
  return result;
}

// Makes copies go through a buffer, where their bytes are seen.
ssize_t copy_file_range(int, off64_t*, int, off64_t*, size_t, unsigned) {
  errno = EXDEV;
  return -1;
}

int fsync(int fd) { return synced(fd); }
int fdatasync(int fd) { return synced(fd); }
int syncfs(int fd) noexcept {
  if (!recording) return static_cast<int>(syscall(SYS_syncfs, fd));
  if (!recording->active) return 0;
  for (const auto& [name, number] : recording->names) {
    note({Event::Kind::sync, number, {}, 0, {}});
    note({Event::Kind::sync_names, 0, directory_of(name), 0, {}});
  }
  return 0;
}

}  // extern "C"
