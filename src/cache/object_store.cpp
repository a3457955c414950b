#include "cache/object_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <set>

#include "base/fd.h"
#include "base/log.h"
#include "base/mutex.h"
#include "cache/eviction_trigger.h"
#include "cache/lru.h"
#include "cache/object_eviction.h"
#include "cache/object_file.h"

namespace playfs::cache {

namespace {
// Long enough that no writer can still be working on such a file.
constexpr time_t kAbandonedAfter = 24 * 3600;
/// Disk space left free for others, above all staged changes: a sixty-fourth of the disk, up to this limit.
constexpr std::uint64_t kMostLeftFree = 64 << 20;
constexpr std::uint64_t kShareLeftFree = 64;
/// How long an unusable directory is not retried.
constexpr std::chrono::seconds kPreparedAgainAfter{5};
/// How long eviction is not retried after it freed nothing on a full disk, because something else fills it.
constexpr std::chrono::seconds kFutileFor{30};

constexpr std::size_t kCopyStep = 1 << 20;  // a multiple of the block size, so that no block is read twice
static_assert(kCopyStep % kBlockSize == 0);

class MemoryObject final : public Object {
 public:
  MemoryObject(ContentHash hash, std::string bytes) : hash_(hash), bytes_(std::move(bytes)) {}
  const ContentHash& hash() const override { return hash_; }
  std::uint64_t size() const override { return bytes_.size(); }
  Result<std::string> read(std::uint64_t offset, std::size_t size) const override {
    return offset < bytes_.size() ? bytes_.substr(offset, size) : std::string();
  }

 private:
  ContentHash hash_;
  std::string bytes_;
};

/// Removes what killed processes left half written.
void sweep_abandoned(const std::string& directory) {
  std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(directory.c_str()), closedir);
  if (!listing) return;
  const time_t now = std::time(nullptr);
  while (const dirent* entry = readdir(listing.get())) {
    struct stat attributes {};
    const int folder = dirfd(listing.get());
    if (fstatat(folder, entry->d_name, &attributes, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(attributes.st_mode)) continue;
    if (attributes.st_mtime < now - kAbandonedAfter) unlinkat(folder, entry->d_name, 0);
  }
}

/// Reserves space for `size` bytes before writing.
Status reserve(int fd, std::uint64_t size) {
  struct statvfs disk {};
  if (fstatvfs(fd, &disk) == 0) {
    const std::uint64_t all = std::uint64_t{disk.f_blocks} * disk.f_frsize;
    const std::uint64_t kept = std::min(kMostLeftFree, all / kShareLeftFree);
    if (std::uint64_t{disk.f_bavail} * disk.f_frsize < size + kept)
      return fail(ErrorCode::no_space, "not enough disk space for " + std::to_string(size) + " bytes of cache");
  }
  if (fallocate(fd, 0, 0, static_cast<off_t>(size)) == 0 || errno == EOPNOTSUPP || errno == ENOSYS) return {};
  return fail(error_from_errno(errno, "reserve " + std::to_string(size) + " bytes"));
}

/// Updates an object's time of last use, if it is older than kUsedGranularity.
void mark_used(int fd, const struct stat& attributes) {
  const time_t old = std::time(nullptr) - std::chrono::seconds(kUsedGranularity).count();
  if (attributes.st_mtime < old) futimens(fd, nullptr);
}

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }
}  // namespace

struct ObjectStore::State {
  State(std::string path, const ObjectStoreOptions& options)
      : directory(std::move(path)),
        eviction(EvictionTrigger::make(options.budget / kShareBetweenTrims, options.written_before, options.executor,
                                       [directory = directory, budget = options.budget]() -> Status {
                                         PLAYFS_TRY([[maybe_unused]] auto left, trim_objects(directory, budget));
                                         return {};
                                       })),
        open_objects(options.open_files),
        memory_objects(options.memory) {}

  const std::string directory;
  const std::shared_ptr<EvictionTrigger> eviction;  ///< independent of this state: its passes may outlive it
  std::atomic<bool> usable = false;                 ///< the directory exists and is ours
  std::atomic<std::int64_t> futile_until = 0;       ///< steady clock, in nanoseconds
  Mutex mutex;
  Lru<ContentHash, ObjectPtr> open_objects PLAYFS_GUARDED_BY(mutex);
  std::set<ContentHash> unremovable PLAYFS_GUARDED_BY(mutex);  ///< damaged files that cannot be set aside
  Lru<ContentHash, ObjectPtr> memory_objects PLAYFS_GUARDED_BY(mutex);
  std::optional<Error> trouble PLAYFS_GUARDED_BY(mutex);  ///< of the last write; already logged
  std::chrono::steady_clock::time_point prepared_at PLAYFS_GUARDED_BY(mutex);

  std::string folder_of(const ContentHash& hash) const { return directory + "/" + hash.hex().substr(0, 2); }
  std::string path_of(const ContentHash& hash) const { return folder_of(hash) + "/" + hash.hex().substr(2); }
  std::string scratch() const { return directory + "/scratch"; }
  std::string damaged() const { return directory + "/damaged"; }

  ObjectPtr remembered(const ContentHash& hash) {
    MutexLock lock(mutex);
    if (ObjectPtr* open = open_objects.find(hash)) return *open;
    if (ObjectPtr* held = memory_objects.find(hash)) return *held;
    return nullptr;
  }

  void remember(const ObjectPtr& object) {
    std::vector<ObjectPtr> evicted;  // closed after the lock is released
    MutexLock lock(mutex);
    evicted = open_objects.insert(object->hash(), object);
  }

  void forget_open_objects() {
    std::vector<ObjectPtr> closed;
    MutexLock lock(mutex);
    closed = open_objects.take_all();
  }

  /// Creates the directory if missing and ensures that it is private.
  Status prepare() {
    {
      MutexLock lock(mutex);
      prepared_at = std::chrono::steady_clock::now();
    }
    PLAYFS_CHECK(make_private_directory(directory));
    struct stat attributes {};
    if (stat(directory.c_str(), &attributes) != 0) return fail(error_from_errno(errno, "stat " + directory));
    // It may have been created by hand with a wider umask. On a read-only file system it can still be read.
    if ((attributes.st_mode & 0777) != 0700 && chmod(directory.c_str(), 0700) != 0)
      return fail(error_from_errno(errno, "chmod " + directory));
    usable = true;
    return {};
  }

  /// Retries an unusable directory from time to time.
  Status be_prepared() {
    if (usable) return {};
    {
      MutexLock lock(mutex);
      if (trouble && std::chrono::steady_clock::now() - prepared_at < kPreparedAgainAfter) return fail(*trouble);
    }
    return prepare();
  }

  /// On a full disk, evicts older objects.
  Status write(const ContentHash& hash, std::string_view bytes) {
    Status done = be_prepared();
    if (done) done = write_once(hash, bytes);
    if (!done && done.error().code == ErrorCode::no_space && make_room(bytes.size())) done = write_once(hash, bytes);
    if (done) {
      eviction->wrote(file_size_of(bytes.size()));
      MutexLock lock(mutex);
      unremovable.erase(hash);
    }
    note(done);
    return done;
  }

  /// Logs only the first of a series of failures, since a full disk fails every write alike.
  void note(const Status& written) {
    MutexLock lock(mutex);
    if (!written && !trouble) log_warning("new content is kept only in memory: " + written.error().message);
    if (written) trouble.reset();
    else trouble = written.error();
  }

  /// Frees twice the needed space, plus a sixteenth of the cache. False if that is futile.
  bool make_room(std::uint64_t needed) {
    const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
    if (now < futile_until) return false;
    auto there = measure_objects(directory);
    if (there && there->bytes > 0) {
      forget_open_objects();  // an open file's space is not freed
      auto left = trim_objects(directory, there->bytes - std::min(there->bytes, 2 * needed + there->bytes / 16));
      if (left && left->bytes < there->bytes) return true;
      if (!left && left.error().code == ErrorCode::busy) return true;  // another process is evicting
    }
    futile_until = now + std::chrono::nanoseconds(kFutileFor).count();
    return false;
  }

  /// Creates directories only when they turn out to be missing: checking first, or always creating, costs more than the
  /// object.
  Status write_once(const ContentHash& hash, std::string_view bytes) const {
    std::string beside;
    auto create = [&] {
      beside = scratch() + "/" + hash.hex() + ".XXXXXX";
      return UniqueFd(mkostemp(beside.data(), O_CLOEXEC));
    };
    UniqueFd fd = create();
    if (!fd && errno == ENOENT) {
      for (const std::string& path : {directory, scratch()}) PLAYFS_CHECK(make_private_directory(path));
      fd = create();
    }
    if (!fd) return fail(error_from_errno(errno, "create " + beside));
    auto complete = [&]() -> Status {
      const std::string trailer = make_trailer(hash, bytes);
      PLAYFS_CHECK(reserve(fd.get(), bytes.size() + trailer.size()));
      PLAYFS_CHECK(write_all(fd.get(), bytes));
      PLAYFS_CHECK(write_all(fd.get(), trailer));
      const std::string path = path_of(hash);
      if (rename(beside.c_str(), path.c_str()) == 0) return {};
      if (errno == ENOENT && mkdir(folder_of(hash).c_str(), 0700) == 0 && rename(beside.c_str(), path.c_str()) == 0)
        return {};
      if (errno == EEXIST && rename(beside.c_str(), path.c_str()) == 0) return {};  // another thread made the directory
      return fail(error_from_errno(errno, "rename " + beside));
    }();
    if (!complete) unlink(beside.c_str());
    return complete;
  }

  /// The object from its file, if it is valid; nullptr if missing. `use` marks it as used.
  static Result<ObjectPtr> open_object(const std::shared_ptr<State>& state, const ContentHash& hash, bool use);

  /// Renames a damaged file away, so that it is never served again. `examined` is the descriptor through which the
  /// damage was found: another process may have put a healthy file there since.
  void set_aside(const ContentHash& hash, int examined, std::string_view what) {
    log_warning("cache object " + hash.hex() + " is damaged (" + std::string(what) + "): set aside");
    {
      std::vector<ObjectPtr> closed;
      MutexLock lock(mutex);
      closed = open_objects.take(hash);
    }
    struct stat seen {
    }, named{};
    const std::string path = path_of(hash);
    if (fstat(examined, &seen) != 0 || lstat(path.c_str(), &named) != 0 || !same_file(seen, named)) return;
    const bool moved =
        make_private_directory(damaged()) && rename(path.c_str(), (damaged() + "/" + hash.hex()).c_str()) == 0;
    if (moved || unlink(path.c_str()) == 0 || errno == ENOENT) return;
    MutexLock lock(mutex);  // a read-only file system
    unremovable.insert(hash);
  }
};

namespace {

class FileObject final : public Object {
 public:
  /// Called with the descriptor and a reason when a block is damaged.
  using Damaged = std::function<void(int, std::string_view)>;

  FileObject(ContentHash hash, UniqueFd fd, Trailer trailer, Damaged damaged)
      : hash_(hash), fd_(std::move(fd)), trailer_(std::move(trailer)), damaged_(std::move(damaged)) {}

  const ContentHash& hash() const override { return hash_; }
  std::uint64_t size() const override { return trailer_.size; }

  Result<std::string> read(std::uint64_t offset, std::size_t size) const override {
    if (offset >= trailer_.size || size == 0) return std::string();
    const std::uint64_t end =
        std::min<std::uint64_t>(trailer_.size, offset + std::min<std::uint64_t>(size, trailer_.size - offset));
    const std::uint64_t first = offset / kBlockSize * kBlockSize;
    const std::uint64_t last = std::min<std::uint64_t>(trailer_.size, (end + kBlockSize - 1) / kBlockSize * kBlockSize);

    auto blocks = read_at(fd_.get(), first, last - first);
    if (!blocks) return damage(blocks.error().message);
    if (blocks->size() != last - first) return damage("the file is truncated");
    for (std::size_t at = 0; at < blocks->size(); at += kBlockSize) {
      const auto block = std::string_view(*blocks).substr(at, kBlockSize);
      if (checksum_of(block) != trailer_.checksums[(first + at) / kBlockSize])
        return damage("block " + std::to_string((first + at) / kBlockSize) + " does not match its checksum");
    }
    blocks->resize(end - first);
    if (offset != first) blocks->erase(0, offset - first);
    return std::move(*blocks);
  }

  Status copy_to(int fd) const override {
    // Without sharing, copying in the kernel gains nothing: the bytes must be read to be checked.
    if (ioctl(fd, FICLONE, fd_.get()) != 0) return Object::copy_to(fd);
    for (std::uint64_t offset = 0; offset < size(); offset += kCopyStep) {
      PLAYFS_TRY([[maybe_unused]] const std::string checked, read(offset, kCopyStep));
    }
    if (ftruncate(fd, static_cast<off_t>(size())) != 0) return fail(error_from_errno(errno, "truncate the copy"));
    return {};
  }

 private:
  Result<std::string> damage(std::string_view what) const {
    damaged_(fd_.get(), what);
    return fail(ErrorCode::corrupt, "cached content " + hash_.hex() + ": " + std::string(what));
  }

  ContentHash hash_;
  UniqueFd fd_;
  Trailer trailer_;
  Damaged damaged_;
};

/// Whether an existing object returns exactly these bytes.
bool holds(const Object& object, std::string_view bytes) {
  if (object.size() != bytes.size()) return false;
  auto stored = object.read(0, bytes.size());
  return stored && *stored == bytes;
}

}  // namespace

Status Object::copy_to(int fd) const {
  for (std::uint64_t offset = 0; offset < size();) {
    PLAYFS_TRY(const std::string piece, read(offset, kCopyStep));
    PLAYFS_CHECK(write_all_at(fd, piece, offset));
    offset += piece.size();
  }
  return {};
}

ObjectStore::ObjectStore(std::shared_ptr<State> state) : state_(std::move(state)) {}
ObjectStore::~ObjectStore() { state_->eviction->finish(); }

Result<std::unique_ptr<ObjectStore>> ObjectStore::open(const std::string& directory, ObjectStoreOptions options) {
  auto state = std::make_shared<State>(directory, options);
  if (Status prepared = state->prepare(); !prepared) {
    if (options.needs_directory) return fail(prepared.error());
    state->note(prepared);
  }
  if (state->usable) sweep_abandoned(state->scratch());
  return std::unique_ptr<ObjectStore>(new ObjectStore(std::move(state)));
}

Result<ObjectPtr> ObjectStore::State::open_object(const std::shared_ptr<State>& state, const ContentHash& hash,
                                                  bool use) {
  {
    MutexLock lock(state->mutex);
    if (state->unremovable.contains(hash)) return ObjectPtr();
  }
  const std::string path = state->path_of(hash);
  auto try_open = [&] { return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)); };
  UniqueFd fd = try_open();
  if (!fd && (errno == EMFILE || errno == ENFILE)) {
    state->forget_open_objects();
    fd = try_open();
  }
  if (!fd) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return ObjectPtr();
    return fail(error_from_errno(errno, "open " + path));
  }

  struct stat attributes {};
  if (fstat(fd.get(), &attributes) != 0) return fail(error_from_errno(errno, "stat " + path));
  if (!S_ISREG(attributes.st_mode) || attributes.st_uid != geteuid()) return ObjectPtr();
  const auto file_size = static_cast<std::uint64_t>(attributes.st_size);
  std::optional<Trailer> trailer;
  if (auto length = trailer_size(file_size))
    if (auto bytes = read_at(fd.get(), file_size - *length, *length)) trailer = parse_trailer(*bytes, file_size, hash);
  if (!trailer) {
    state->set_aside(hash, fd.get(), "its trailer is not valid");
    return ObjectPtr();
  }
  if (use) mark_used(fd.get(), attributes);

  // Weak because an object may outlive its store, and the store caches objects.
  auto damaged = [hash, weak = std::weak_ptr(state)](int examined, std::string_view what) {
    if (auto alive = weak.lock()) alive->set_aside(hash, examined, what);
  };
  return std::make_shared<FileObject>(hash, std::move(fd), std::move(*trailer), std::move(damaged));
}

Result<ObjectPtr> ObjectStore::find(const ContentHash& hash) {
  if (ObjectPtr object = state_->remembered(hash)) return object;
  if (!state_->usable) return ObjectPtr();
  PLAYFS_TRY(ObjectPtr object, State::open_object(state_, hash, true));
  if (object) state_->remember(object);
  return object;
}

std::optional<Error> ObjectStore::trouble() const {
  MutexLock lock(state_->mutex);
  return state_->trouble;
}

Result<bool> ObjectStore::verify(const ContentHash& hash) {
  constexpr std::size_t piece = 1 << 20;
  const bool there = access(state_->path_of(hash).c_str(), F_OK) == 0;  // a removed object is not damaged
  PLAYFS_TRY(const ObjectPtr object, State::open_object(state_, hash, false));
  if (!object) return !there;
  for (std::uint64_t at = 0; at < object->size(); at += piece)
    if (!object->read(at, piece)) return false;
  return true;
}

Result<ObjectPtr> ObjectStore::put(std::string_view bytes) {
  const ContentHash hash = ContentHash::of(bytes);
  if (auto there = find(hash); there && *there && holds(**there, bytes)) {
    // An open object whose file was deleted serves only this process.
    if (access(state_->path_of(hash).c_str(), F_OK) == 0) return *there;
  }

  auto written = state_->write(hash, bytes);
  if (written) {
    if (auto object = find(hash); object && *object) return *object;
  }
  ObjectPtr object = std::make_shared<MemoryObject>(hash, std::string(bytes));
  std::vector<ObjectPtr> evicted;
  MutexLock lock(state_->mutex);
  evicted = state_->memory_objects.insert(hash, object, std::max<std::size_t>(bytes.size(), 1));
  return object;
}

}  // namespace playfs::cache
