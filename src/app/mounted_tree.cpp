#include "app/mounted_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "app/tree_origin.h"
#include "base/fd.h"
#include "model/path.h"
#include "wire/json.h"

namespace playfs::app {

namespace {

constexpr std::size_t kLargestFile = 256 << 20;
constexpr std::size_t kReadAtOnce = 1 << 20;
constexpr std::size_t kLargestAttribute = 64 << 10;

/// ELOOP: a link where something else was asked for.
bool is_nothing_there(int error) { return error == ENOENT || error == ENOTDIR || error == ELOOP; }

/// The directory at `path` below `root`, if no link leads there.
Result<std::optional<UniqueFd>> open_directory(const std::string& root, std::string_view path) {
  constexpr int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  UniqueFd directory(open(root.c_str(), flags));
  for (std::size_t at = 0; directory && at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    directory = UniqueFd(openat(directory.get(), std::string(path.substr(at, end - at)).c_str(), flags | O_NOFOLLOW));
    at = end + 1;
  }
  if (directory) return std::optional(std::move(directory));
  if (is_nothing_there(errno)) return std::optional<UniqueFd>();
  return fail(error_from_errno(errno, fmt::format("open {}/{}", root, path)));
}

/// A path below a root, as its directory and its name there.
struct Place {
  std::string_view directory;
  std::string name;
};

Place place_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {"", std::string(path)};
  return {path.substr(0, slash), std::string(path.substr(slash + 1))};
}

/// `path`: where that is, below the root; for messages, and unique in the tree.
Result<std::optional<FileEntry>> entry_in(int directory, const std::string& name, const std::string& path) {
  struct stat attributes {};
  if (fstatat(directory, name.c_str(), &attributes, AT_SYMLINK_NOFOLLOW) != 0) {
    if (is_nothing_there(errno)) return std::optional<FileEntry>();
    return fail(error_from_errno(errno, "stat " + path));
  }
  std::array<char, 4096> value{};
  FileEntry entry;
  if (S_ISLNK(attributes.st_mode)) {
    const ssize_t size = readlinkat(directory, name.c_str(), value.data(), value.size());
    if (size < 0) return fail(error_from_errno(errno, "read the link " + path));
    entry.mode = FileMode::symlink;
    entry.inline_text.emplace(value.data(), static_cast<std::size_t>(size));
    return std::optional(std::move(entry));
  }
  if (!S_ISREG(attributes.st_mode)) return std::optional<FileEntry>();
  if ((attributes.st_mode & 0111) != 0) entry.mode = FileMode::executable;
  entry.size_claim = static_cast<std::uint64_t>(attributes.st_size);
  // There is no call for the attributes of a name in a directory.
  const std::string here = fmt::format("/proc/self/fd/{}/{}", directory, name);
  const ssize_t size = lgetxattr(here.c_str(), "user.playfs.hash", value.data(), value.size());
  if (size > 0) entry.hash_claim.assign(value.data(), static_cast<std::size_t>(size));
  // Stands for the content. A claim of any other form than ours proves nothing, even if both sides have the same.
  entry.chunks.emplace_back(known_hash(entry) ? entry.hash_claim : path);
  return std::optional(std::move(entry));
}

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

}  // namespace

Result<std::optional<FileEntry>> MountedTree::entry_at(const std::string& path) const {
  if (root_.empty() || is_at_or_below(path, kMarkFolder)) return std::optional<FileEntry>();
  const Place place = place_of(path);
  PLAYFS_TRY(auto directory, open_directory(root_, place.directory));
  if (!directory) return std::optional<FileEntry>();
  return entry_in(directory->get(), place.name, root_ + "/" + path);
}

Result<std::vector<std::string>> MountedTree::refused() const {
  std::vector<std::string> paths;
  if (root_.empty()) return paths;
  std::string value(kLargestAttribute, '\0');
  const ssize_t size = getxattr(root_.c_str(), "user.playfs.refused", value.data(), value.size());
  if (size < 0 && (errno == ENODATA || errno == ENOTSUP || errno == ENOENT)) return paths;  // a plain directory
  if (size < 0) return fail(error_from_errno(errno, "read the attributes of " + root_));
  PLAYFS_TRY(const Json list, wire::parse_json(std::string_view(value).substr(0, static_cast<std::size_t>(size))));
  if (list.array())
    for (const Json& each : *list.array()) paths.push_back(each.string() ? *each.string() : std::string());
  return paths;
}

Result<std::optional<std::string>> MountedTree::read(const std::string& path) const {
  if (root_.empty() || is_at_or_below(path, kMarkFolder)) return std::optional<std::string>();
  const Place place = place_of(path);
  PLAYFS_TRY(auto directory, open_directory(root_, place.directory));
  if (!directory) return std::optional<std::string>();
  const std::string shown = root_ + "/" + path;
  UniqueFd file(openat(directory->get(), place.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) {
    if (is_nothing_there(errno)) return std::optional<std::string>();
    return fail(error_from_errno(errno, "open " + shown));
  }
  struct stat attributes {};
  if (fstat(file.get(), &attributes) != 0) return fail(error_from_errno(errno, "stat " + shown));
  if (!S_ISREG(attributes.st_mode)) return std::optional<std::string>();
  std::string content;
  for (;;) {
    auto piece = read_at(file.get(), content.size(), kReadAtOnce);
    if (!piece) return fail(piece.error().while_doing(shown));
    content += *piece;
    if (content.size() > kLargestFile)
      return fail(ErrorCode::file_too_big, fmt::format("{} is larger than {} bytes", shown, kLargestFile));
    if (piece->size() < kReadAtOnce) return std::optional(std::move(content));
  }
}

Result<Manifest> MountedTree::list(const std::string& top) const {
  Manifest tree;
  if (root_.empty()) return tree;
  if (!top.empty()) {
    PLAYFS_TRY(auto entry, entry_at(top));
    if (entry) {
      tree.files.emplace(top, *std::move(entry));
      return tree;
    }
  }
  // One directory is open at a time: a tree may be deeper than there are descriptors.
  for (std::vector<std::string> left = {top}; !left.empty();) {
    const std::string below = std::move(left.back());
    left.pop_back();
    PLAYFS_TRY(auto found, open_directory(root_, below));
    if (!found) continue;
    UniqueFd readable(openat(found->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const std::unique_ptr<DIR, CloseDirectory> directory(readable ? fdopendir(readable.get()) : nullptr);
    if (!directory) return fail(error_from_errno(errno, "list " + root_ + "/" + below));
    static_cast<void>(readable.release());
    for (;;) {
      errno = 0;
      const dirent* item = readdir(directory.get());
      if (!item && errno != 0) return fail(error_from_errno(errno, "list " + root_ + "/" + below));
      if (!item) break;
      const std::string name = item->d_name;
      if (name == "." || name == "..") continue;
      std::string path = below.empty() ? name : below + "/" + name;
      if (path == kMarkFolder) continue;
      PLAYFS_TRY(auto entry, entry_in(dirfd(directory.get()), name, root_ + "/" + path));
      if (entry) tree.files.emplace(std::move(path), *std::move(entry));
      else if (item->d_type == DT_DIR || item->d_type == DT_UNKNOWN) left.push_back(std::move(path));
    }
  }
  return tree;
}

}  // namespace playfs::app
