#include "stage/store/spool.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

namespace playfs::stage {

namespace {

std::optional<std::uint64_t> number_of(std::string_view name) {
  std::uint64_t number = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size() || std::to_string(number) != name) return std::nullopt;
  return number;
}

/// Copies [offset, end) between descriptors: in the kernel if possible, else through a buffer.
Status copy_range(int from, int to, std::uint64_t offset, std::uint64_t end) {
  auto in = static_cast<loff_t>(offset);
  auto out = in;
  while (static_cast<std::uint64_t>(in) < end) {
    ssize_t copied = copy_file_range(from, &in, to, &out, end - static_cast<std::uint64_t>(in), 0);
    if (copied == 0) return {};  // end of file
    if (copied > 0 || errno == EINTR) continue;
    if (errno != EXDEV && errno != EINVAL && errno != EOPNOTSUPP && errno != ENOSYS)
      return fail(error_from_errno(errno, "copy a staged file"));
    constexpr std::uint64_t piece = 1 << 20;
    PLAYFS_TRY(std::string data,
               read_at(from, static_cast<std::uint64_t>(in), std::min(piece, end - static_cast<std::uint64_t>(in))));
    if (data.empty()) return {};
    PLAYFS_CHECK(write_all_at(to, data, static_cast<std::uint64_t>(in)));
    in += static_cast<loff_t>(data.size());
    out = in;
  }
  return {};
}

/// Copies the first `size` bytes: as a reflink where the disk can, holes kept.
Status copy_bytes(int from, int to, std::uint64_t size) {
  if (ioctl(to, FICLONE, from) != 0) {
    for (std::uint64_t offset = 0; offset < size;) {
      off_t data = lseek(from, static_cast<off_t>(offset), SEEK_DATA);
      if (data < 0 && errno == ENXIO) break;  // only a hole is left
      if (data < 0) return fail(error_from_errno(errno, "copy a staged file"));
      off_t hole = lseek(from, data, SEEK_HOLE);
      if (hole < 0) return fail(error_from_errno(errno, "copy a staged file"));
      std::uint64_t end = std::min(size, static_cast<std::uint64_t>(hole));
      PLAYFS_CHECK(copy_range(from, to, static_cast<std::uint64_t>(data), end));
      offset = static_cast<std::uint64_t>(hole);
    }
  }
  if (ftruncate(to, static_cast<off_t>(size)) != 0) return fail(error_from_errno(errno, "copy a staged file"));
  return {};
}

/// Suffix of partial files' names.
constexpr char kPartial = '~';

/// Above this many files, one sync of the whole file system is cheaper than one of each.
constexpr std::size_t kSyncedOneByOne = 16;

Error sync_failed(int number, const std::string& doing) {
  Error error = error_from_errno(number, doing);
  error.hint = "the disk failed: once it is fixed, rewrite the file, then unmount and mount again";
  return error;
}

Error lost(std::string what) {
  return Error{ErrorCode::corrupt, std::move(what), "rewrite the file, restore its bytes, or playfs discard it"};
}

/// Fails if bytes that an earlier run left are missing.
Status check_size(SpoolFile& file, int fd) {
  struct stat found {};
  if (fstat(fd, &found) != 0) return fail(error_from_errno(errno, "stat spool/" + file.name()));
  const std::uint64_t size = static_cast<std::uint64_t>(found.st_size), expected = file.expected;
  file.is_lost = size < expected;
  if (file.is_lost)
    return fail(lost("the staged bytes in spool/" + file.name() + " are truncated: " + std::to_string(size) + " of " +
                     std::to_string(expected) + " bytes are left"));
  file.expected = 0;
  return {};
}

}  // namespace

void SpoolFile::note_synced(std::uint64_t changes) {
  was_synced_ = true;
  std::uint64_t known = synced_changes_;
  while (known < changes && !synced_changes_.compare_exchange_weak(known, changes)) {
  }
}

std::string SpoolFile::name() const {
  std::string name = std::to_string(number_);
  if (is_partial) name += kPartial;
  return name;
}

SpoolFile::~SpoolFile() {
  if (keep || !is_made) return;
  if (is_partial) unlinkat(spool_->directory_.get(), name().c_str(), 0);
  spool_->give_up(number_);
}

Result<std::shared_ptr<Spool>> Spool::open(const std::string& directory, std::size_t descriptors) {
  PLAYFS_CHECK(make_private_directory(directory));
  UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return fail(error_from_errno(errno, "open " + directory));
  return std::shared_ptr<Spool>(new Spool(std::move(fd), descriptors));
}

Result<std::vector<std::string>> Spool::names() {
  UniqueFd copy(openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!copy) return fail(error_from_errno(errno, "open the spool"));
  std::unique_ptr<DIR, int (*)(DIR*)> listing(fdopendir(copy.get()), closedir);
  if (!listing) return fail(error_from_errno(errno, "list the spool"));
  static_cast<void>(copy.release());  // closedir closes it
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* item = readdir(listing.get());
    if (!item && errno != 0) return fail(error_from_errno(errno, "list the spool"));
    if (!item) return names;
    names.emplace_back(item->d_name);
  }
}

Result<std::vector<std::uint64_t>> Spool::list() {
  PLAYFS_TRY(auto all, names());
  std::vector<std::uint64_t> numbers;
  for (const auto& name : all) {
    if (auto number = number_of(name)) numbers.push_back(*number);
  }
  return numbers;
}

void Spool::remove_partial() noexcept {
  auto all = names();
  if (!all) return;  // they do no harm
  for (const auto& name : *all) {
    if (name.ends_with(kPartial) && number_of(name.substr(0, name.size() - 1)))
      unlinkat(directory_.get(), name.c_str(), 0);
  }
}

Result<SharedFd> Spool::descriptor(SpoolFile& file, bool create) {
  {
    MutexLock lock(mutex_);
    if (auto found = open_.find(file.number()); found != open_.end()) {
      recent_.splice(recent_.begin(), recent_, found->second.position);
      return found->second.fd;
    }
  }
  if (!file.is_made && !create) return SharedFd();
  std::string name = file.name();
  int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NOATIME;
  UniqueFd fd;
  if (file.is_made) {
    fd = UniqueFd(openat(directory_.get(), name.c_str(), flags));
    // Not an empty file: it had bytes, and would be published without them.
    file.is_lost = !fd && errno == ENOENT;
    if (file.is_lost) return fail(lost("the staged bytes in spool/" + name + " are missing"));
    if (fd && file.expected > 0) PLAYFS_CHECK(check_size(file, fd.get()));
  } else {
    // Not O_EXCL: another thread may be writing the file's first bytes too.
    fd = UniqueFd(openat(directory_.get(), name.c_str(), flags | O_CREAT, 0600));
    int error = errno;
    // Before the file appears as made: a sync that sees it so must not find its name synced already.
    ++names_made_;
    if (fd) file.is_made = true;
    errno = error;
  }
  if (!fd) return fail(error_from_errno(errno, "open spool/" + name));
  auto shared = std::make_shared<const UniqueFd>(std::move(fd));
  MutexLock lock(mutex_);
  remember(file.number(), shared);
  return shared;
}

void Spool::remember(std::uint64_t number, SharedFd fd) {
  if (open_.contains(number)) return;
  recent_.push_front(number);
  open_.emplace(number, Open{std::move(fd), recent_.begin()});
  if (open_.size() > descriptors_) {
    open_.erase(recent_.back());
    recent_.pop_back();
  }
}

void Spool::on_given_up(std::function<void(std::size_t)> given_up) {
  MutexLock lock(mutex_);
  tell_ = std::move(given_up);
}

void Spool::give_up(std::uint64_t number) noexcept {
  std::shared_ptr<const UniqueFd> closes;
  std::function<void(std::size_t)> tell;
  std::size_t waiting = 0;
  {
    MutexLock lock(mutex_);
    if (auto found = open_.find(number); found != open_.end()) {
      closes = std::move(found->second.fd);
      recent_.erase(found->second.position);
      open_.erase(found);
    }
    if (!tell_) return;
    given_up_.push_back(number);
    waiting = given_up_.size();
    tell = tell_;
  }
  tell(waiting);
}

std::vector<std::uint64_t> Spool::take_given_up() {
  MutexLock lock(mutex_);
  return std::exchange(given_up_, {});
}

void Spool::put_back(const std::vector<std::uint64_t>& numbers) {
  MutexLock lock(mutex_);
  given_up_.insert(given_up_.end(), numbers.begin(), numbers.end());
}

void Spool::remove(const std::vector<std::uint64_t>& numbers) noexcept {
  for (std::uint64_t number : numbers) unlinkat(directory_.get(), std::to_string(number).c_str(), 0);
}

std::uint64_t Spool::free_room() const noexcept {
  struct statvfs disk {};
  if (fstatvfs(directory_.get(), &disk) != 0) return 0;
  return std::uint64_t{disk.f_bavail} * disk.f_frsize;
}

Status Spool::clone(SpoolFile& from, SpoolFile& to, std::uint64_t size) {
  PLAYFS_TRY(SharedFd source, descriptor(from, false));
  return source ? clone(source->get(), to, size) : Status();
}

Status Spool::clone(int from, SpoolFile& to, std::uint64_t size) {
  PLAYFS_TRY(SharedFd target, descriptor(to, true));
  return copy_bytes(from, target->get(), size);
}

Status Spool::complete(SpoolFile& file) {
  if (file.is_made) PLAYFS_CHECK(sync_bytes(file));
  PLAYFS_CHECK(take_name(file));
  return sync_names();
}

Status Spool::name(const std::vector<SpoolFilePtr>& files) {
  for (const auto& file : files) PLAYFS_CHECK(take_name(*file));
  return sync_names();
}

Status Spool::take_name(SpoolFile& file) {
  if (file.is_made && file.is_partial) {
    const std::string name = std::to_string(file.number());
    if (renameat(directory_.get(), file.name().c_str(), directory_.get(), name.c_str()) != 0)
      return fail(error_from_errno(errno, "name spool/" + name));
    ++names_made_;
  }
  file.is_partial = false;
  return {};
}

Result<std::uint64_t> Spool::share(SpoolFile& file, int folder) {
  const std::string name = std::to_string(file.number());
  file.may_be_shared = true;
  if (linkat(directory_.get(), name.c_str(), folder, name.c_str(), 0) != 0) {
    if (errno == ENOENT) {
      file.is_lost = true;
      return fail(lost("the staged bytes in spool/" + name + " are missing"));
    }
    // A file system without hard links, or too many of this file.
    if (errno != EPERM && errno != EMLINK && errno != EOPNOTSUPP && errno != ENOSYS && errno != EXDEV)
      return fail(error_from_errno(errno, "link spool/" + name));
    PLAYFS_TRY(SharedFd source, descriptor(file, false));
    UniqueFd copy(openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!copy) return fail(error_from_errno(errno, "copy spool/" + name));
    struct stat found {};
    if (fstat(source->get(), &found) != 0) return fail(error_from_errno(errno, "stat spool/" + name));
    PLAYFS_CHECK(copy_bytes(source->get(), copy.get(), static_cast<std::uint64_t>(found.st_size)));
  }
  struct stat found {};
  if (fstatat(folder, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0)
    return fail(error_from_errno(errno, "stat spool/" + name));
  const auto size = static_cast<std::uint64_t>(found.st_size);
  if (size >= file.expected) return size;
  file.is_lost = true;
  return fail(lost("the staged bytes in spool/" + name + " are truncated"));
}

bool Spool::is_shared(SpoolFile& file) {
  if (!file.may_be_shared || !file.is_made) return false;
  struct stat found {};
  if (fstatat(directory_.get(), file.name().c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return false;  // it is lost
  if (found.st_nlink < 2) file.may_be_shared = false;
  return found.st_nlink > 1;
}

bool Spool::has_same(std::uint64_t number, int folder) const {
  const std::string name = std::to_string(number);
  struct stat one {
  }, other{};
  return fstatat(directory_.get(), name.c_str(), &one, AT_SYMLINK_NOFOLLOW) == 0 &&
         fstatat(folder, name.c_str(), &other, AT_SYMLINK_NOFOLLOW) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

Status Spool::sync(SpoolFile& file) {
  PLAYFS_CHECK(sync_bytes(file));
  return sync_names();
}

Status Spool::sync(const std::vector<SpoolFilePtr>& files) {
  if (files.size() > kSyncedOneByOne) {
    std::vector<std::uint64_t> changes;
    for (const auto& file : files) {
      MutexLock only(file->syncing_);
      if (file->sync_error_) return fail(*file->sync_error_);
      changes.push_back(file->changes);
    }
    PLAYFS_CHECK(sync_everything());
    for (std::size_t i = 0; i < files.size(); ++i) files[i]->note_synced(changes[i]);
    return {};
  }
  Status all;
  for (const auto& file : files) {
    if (auto synced = sync_bytes(*file); !synced && all) all = synced;
  }
  auto names = sync_names();
  return all ? names : all;
}

Status Spool::sync_bytes(SpoolFile& file) {
  PLAYFS_TRY(SharedFd fd, descriptor(file, false));
  if (!fd) return {};
  MutexLock only(file.syncing_);
  if (file.sync_error_) return fail(*file.sync_error_);
  const std::uint64_t changes = file.changes;
  if (fsync(fd->get()) == 0) {
    file.note_synced(changes);
    return {};
  }
  file.sync_error_ = sync_failed(errno, "sync spool/" + std::to_string(file.number()));
  return fail(*file.sync_error_);
}

Status Spool::sync_names() {
  const std::uint64_t wanted = names_made_;
  MutexLock only(syncing_);  // so that names which another thread syncs are on disk on return
  if (sync_error_) return fail(*sync_error_);
  if (names_synced_ >= wanted) return {};
  const std::uint64_t made = names_made_;
  if (fsync(directory_.get()) != 0) {
    sync_error_ = sync_failed(errno, "sync the spool");
    return fail(*sync_error_);
  }
  names_synced_ = made;
  return {};
}

Status Spool::sync_everything() {
  MutexLock only(syncing_);
  if (sync_error_) return fail(*sync_error_);
  const std::uint64_t made = names_made_;
  if (syncfs(directory_.get()) != 0) {
    sync_error_ = sync_failed(errno, "sync the spool's file system");
    return fail(*sync_error_);
  }
  names_synced_ = made;
  return {};
}

}  // namespace playfs::stage
