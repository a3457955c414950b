#include "cache/object_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <functional>

#include "base/fd.h"
#include "base/log.h"
#include "base/mutex.h"
#include "cache/lru.h"
#include "cache/object_file.h"

namespace playfs::cache {

namespace {
// Long enough that no writer is still at work on a file of that age.
constexpr time_t kAbandonedAfter = 24 * 3600;

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

/// Removes what a killed process left half written.
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

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }
}  // namespace

struct ObjectStore::State {
  State(std::string path, const ObjectStoreOptions& options)
      : directory(std::move(path)), open_objects(options.open_files), memory_objects(options.memory) {}

  const std::string directory;
  Mutex mutex;
  Lru<ContentHash, ObjectPtr> open_objects PLAYFS_GUARDED_BY(mutex);
  Lru<ContentHash, ObjectPtr> memory_objects PLAYFS_GUARDED_BY(mutex);

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

  /// Any part of the directory may have been deleted a moment ago: it is made again, once.
  Status write(const ContentHash& hash, std::string_view bytes) const {
    auto written = write_once(hash, bytes);
    if (written || written.error().code != ErrorCode::not_found) return written;
    for (const std::string& path : {directory, scratch(), folder_of(hash)}) PLAYFS_CHECK(make_private_directory(path));
    return write_once(hash, bytes);
  }

  Status write_once(const ContentHash& hash, std::string_view bytes) const {
    std::string beside = scratch() + "/" + hash.hex() + ".XXXXXX";
    UniqueFd fd(mkostemp(beside.data(), O_CLOEXEC));
    if (!fd) return fail(error_from_errno(errno, "create " + beside));
    auto complete = [&]() -> Status {
      PLAYFS_CHECK(write_all(fd.get(), bytes));
      PLAYFS_CHECK(write_all(fd.get(), make_trailer(hash, bytes)));
      if (rename(beside.c_str(), path_of(hash).c_str()) != 0) return fail(error_from_errno(errno, "rename " + beside));
      return {};
    }();
    if (!complete) unlink(beside.c_str());
    return complete;
  }

  /// Renames a damaged file away from its name, so that nobody is served by it again. `examined` is the descriptor
  /// through which the damage was seen: by now the name may be a healthy file of another process.
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
    if (!moved) unlink(path.c_str());
  }
};

namespace {

class FileObject final : public Object {
 public:
  /// Called with the descriptor and a reason when a block turns out damaged.
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
    if (blocks->size() != last - first) return damage("the file is cut off");
    for (std::size_t at = 0; at < blocks->size(); at += kBlockSize) {
      const auto block = std::string_view(*blocks).substr(at, kBlockSize);
      if (checksum_of(block) != trailer_.checksums[(first + at) / kBlockSize])
        return damage("block " + std::to_string((first + at) / kBlockSize) + " does not match its checksum");
    }
    blocks->resize(end - first);
    if (offset != first) blocks->erase(0, offset - first);
    return std::move(*blocks);
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

/// Whether an object that is already there gives back exactly these bytes.
bool holds(const Object& object, std::string_view bytes) {
  if (object.size() != bytes.size()) return false;
  auto stored = object.read(0, bytes.size());
  return stored && *stored == bytes;
}

}  // namespace

ObjectStore::ObjectStore(std::shared_ptr<State> state) : state_(std::move(state)) {}
ObjectStore::~ObjectStore() = default;

Result<std::unique_ptr<ObjectStore>> ObjectStore::open(const std::string& directory, ObjectStoreOptions options) {
  auto state = std::make_shared<State>(directory, options);
  PLAYFS_CHECK(make_private_directory(directory));
  // It may have been made by hand, with a wider umask.
  if (chmod(directory.c_str(), 0700) != 0) return fail(error_from_errno(errno, "chmod " + directory));
  sweep_abandoned(state->scratch());
  return std::unique_ptr<ObjectStore>(new ObjectStore(std::move(state)));
}

Result<ObjectPtr> ObjectStore::find(const ContentHash& hash) {
  if (ObjectPtr object = state_->remembered(hash)) return object;

  const std::string path = state_->path_of(hash);
  auto try_open = [&] { return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)); };
  UniqueFd fd = try_open();
  if (!fd && (errno == EMFILE || errno == ENFILE)) {
    state_->forget_open_objects();
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
    state_->set_aside(hash, fd.get(), "its trailer is not valid");
    return ObjectPtr();
  }

  // Weak: an object may outlive its store, and the store remembers objects.
  auto damaged = [hash, weak = std::weak_ptr<State>(state_)](int examined, std::string_view what) {
    if (auto state = weak.lock()) state->set_aside(hash, examined, what);
  };
  ObjectPtr object = std::make_shared<FileObject>(hash, std::move(fd), std::move(*trailer), std::move(damaged));
  state_->remember(object);
  return object;
}

Result<ObjectPtr> ObjectStore::put(std::string_view bytes) {
  const ContentHash hash = ContentHash::of(bytes);
  if (auto there = find(hash); there && *there && holds(**there, bytes)) {
    // An open object whose file was deleted serves this process, but not the next one.
    if (access(state_->path_of(hash).c_str(), F_OK) == 0) return *there;
  }

  auto written = state_->write(hash, bytes);
  if (written) {
    if (auto object = find(hash); object && *object) return *object;
  } else {
    log_warning("cannot cache content, keeping it in memory: " + written.error().message);
  }
  ObjectPtr object = std::make_shared<MemoryObject>(hash, std::string(bytes));
  std::vector<ObjectPtr> evicted;
  MutexLock lock(state_->mutex);
  evicted = state_->memory_objects.insert(hash, object, std::max<std::size_t>(bytes.size(), 1));
  return object;
}

}  // namespace playfs::cache
