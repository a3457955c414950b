#include "cache/object_eviction.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "base/fd.h"

namespace playfs::cache {

namespace {

/// Calls `visit(directory descriptor, name)` for each name except "." and ".."; returning false stops and is the
/// result. A missing directory has no names. An unreadable one is an error: treated as empty, its content would never
/// be evicted.
template <class Visit>
Result<bool> each_name(const std::string& path, Visit visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(path.c_str()), closedir);
  if (!listing) {
    if (errno == ENOENT || errno == ENOTDIR) return true;  // not created yet, or just removed
    return fail(error_from_errno(errno, "list " + path));
  }
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(listing.get());
    if (entry == nullptr && errno != 0) return fail(error_from_errno(errno, "list " + path));
    if (entry == nullptr) return true;
    const std::string name = entry->d_name;
    if (name != "." && name != ".." && !visit(dirfd(listing.get()), name)) return false;
  }
}

/// Calls `visit(directory descriptor, file name, hash)` for each object until it returns false.
template <class Visit>
Status each_object(const std::string& directory, Visit visit) {
  Status failed;
  auto in_folder = [&](int, const std::string& prefix) {
    if (prefix.size() != 2) return true;  // scratch/, damaged/
    auto more = each_name(directory + "/" + prefix, [&](int folder, const std::string& rest) {
      auto hash = ContentHash::parse(prefix + rest);
      return !hash || hash->hex() != prefix + rest || visit(folder, rest, *hash);
    });
    if (!more) failed = fail(more.error());
    return more.value_or(false);
  };
  PLAYFS_TRY([[maybe_unused]] bool all, each_name(directory, in_folder));
  return failed;
}

std::string path_of(const std::string& directory, const ContentHash& hash) {
  const std::string hex = hash.hex();
  return directory + "/" + hex.substr(0, 2) + "/" + hex.substr(2);
}

Result<std::uint64_t> count_damaged(const std::string& directory) {
  std::uint64_t count = 0;
  PLAYFS_TRY([[maybe_unused]] bool all,
             each_name(directory + "/damaged", [&](int, const std::string&) { return ++count > 0; }));
  return count;
}

struct StoredObject {
  ContentHash hash;
  std::uint64_t size = 0;
  std::int64_t used_at = 0;  ///< wall clock, in nanoseconds
};

Result<std::vector<StoredObject>> list_objects(const std::string& directory) {
  std::vector<StoredObject> objects;
  PLAYFS_CHECK(each_object(directory, [&](int folder, const std::string& name, const ContentHash& hash) {
    struct stat attributes {};
    if (fstatat(folder, name.c_str(), &attributes, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(attributes.st_mode))
      objects.push_back({hash, static_cast<std::uint64_t>(attributes.st_size),
                         attributes.st_mtim.tv_sec * 1'000'000'000 + attributes.st_mtim.tv_nsec});
    return true;
  }));
  return objects;
}

ObjectsUsage sum_of(const std::vector<StoredObject>& objects) {
  ObjectsUsage usage;
  usage.objects = objects.size();
  for (const StoredObject& object : objects) usage.bytes += object.size;
  return usage;
}

}  // namespace

Result<ObjectsUsage> measure_objects(const std::string& directory) {
  PLAYFS_TRY(const auto objects, list_objects(directory));
  ObjectsUsage usage = sum_of(objects);
  PLAYFS_TRY(usage.damaged, count_damaged(directory));
  return usage;
}

Status visit_objects(const std::string& directory, const std::function<bool(const ContentHash&)>& visit) {
  return each_object(directory, [&](int, const std::string&, const ContentHash& hash) { return visit(hash); });
}

Result<ObjectsUsage> trim_objects(const std::string& directory, std::uint64_t budget) {
  // Locks the directory itself, so that no lock file can be left behind. Two passes at once would evict twice too much.
  const UniqueFd alone(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!alone) return fail(error_from_errno(errno, "open " + directory));
  if (flock(alone.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorCode::busy, "another process is evicting from " + directory);

  PLAYFS_TRY(auto objects, list_objects(directory));
  ObjectsUsage left = sum_of(objects);
  if (left.bytes <= budget) return left;
  std::sort(objects.begin(), objects.end(),
            [](const StoredObject& a, const StoredObject& b) { return a.used_at < b.used_at; });
  for (const StoredObject& object : objects) {
    if (left.bytes <= budget) break;
    if (unlink(path_of(directory, object.hash).c_str()) != 0 && errno != ENOENT) continue;
    left.bytes -= object.size;
    --left.objects;
  }
  return left;
}

Status clear_objects(const std::string& directory) {
  PLAYFS_CHECK(each_object(directory, [](int folder, const std::string& name, const ContentHash&) {
    unlinkat(folder, name.c_str(), 0);
    return true;
  }));
  PLAYFS_TRY([[maybe_unused]] bool all, each_name(directory + "/damaged", [](int folder, const std::string& name) {
               unlinkat(folder, name.c_str(), 0);
               return true;
             }));
  return {};
}

}  // namespace playfs::cache
