#include "app/work_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>

#include "app/lookup.h"
#include "base/beneath.h"
#include "clone/plain_directory.h"
#include "model/path.h"

namespace playfs::app {

namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
/// Finding a page means walking the whole tree, so the depth is bounded, as that of valid paths is.
constexpr std::size_t kDeepest = kMaxPathLength / 2;

Error not_there(const std::string& path) {
  return {ErrorCode::not_found, "there is no file '" + path + "' (links are not followed)"};
}

/// Whether `a` comes before `b` in a walk that visits the names of each directory in order.
bool comes_before(std::string_view a, std::string_view b) {
  auto key = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c); };
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [&](char x, char y) { return key(x) < key(y); });
}

std::string joined(const std::string& directory, const std::string& name) {
  return directory.empty() ? name : directory + "/" + name;
}

WorkFiles::Entry described(const std::string& path, const struct stat& info) {
  const bool is_executable = S_ISREG(info.st_mode) && (info.st_mode & S_IXUSR) != 0;
  return {path, static_cast<std::uint64_t>(info.st_size), S_ISLNK(info.st_mode), is_executable};
}

/// Ends in "~", which is never published: one that a killed process left does no harm.
std::string temporary_name() {
  static std::atomic<unsigned> last = 0;
  return ".playfs-" + std::to_string(getpid()) + "-" + std::to_string(++last) + "~";
}

/// `before`: of the file that it is to replace; nullptr: of a new one, to which the umask applies.
Status fill(int directory, const std::string& name, const std::string& content, const struct stat* before,
            std::optional<bool> executable) {
  const mode_t fresh = executable.value_or(false) ? 0777 : 0666;
  const UniqueFd file(openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, fresh));
  if (!file) return fail(error_from_errno(errno, "create a file"));
  if (before) {
    mode_t mode = before->st_mode & 0777;
    if (executable) mode = *executable ? mode | (mode & 0444) >> 2 : mode & ~0111U;
    if (fchmod(file.get(), mode) != 0) return fail(error_from_errno(errno, "set the mode of a file"));
  }
  PLAYFS_CHECK(write_all(file.get(), content));
  if (fsync(file.get()) != 0) return fail(error_from_errno(errno, "sync a file"));
  return {};
}

/// `make` creates something under the name that it is given, which then replaces `name` if `check` succeeds.
Status put(int directory, const std::string& name, const std::function<Status(const std::string&)>& make,
           const std::function<Status()>& check = nullptr) {
  const std::string temporary = temporary_name();
  Status made = make(temporary);
  if (made && check) made = check();
  if (made && renameat(directory, temporary.c_str(), directory, name.c_str()) != 0)
    made = fail(error_from_errno(errno, "replace"));
  if (!made) static_cast<void>(unlinkat(directory, temporary.c_str(), 0));
  return made;
}

/// What is at a name in a directory; nullopt: nothing.
Result<std::optional<struct stat>> look(int directory, const std::string& name) {
  struct stat info {};
  if (fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) return std::optional(info);
  if (errno == ENOENT) return std::optional<struct stat>();
  return fail(error_from_errno(errno, "stat"));
}

Error is_directory(const std::string& path) { return {ErrorCode::is_a_directory, "'" + path + "' is a directory"}; }

}  // namespace

Result<std::string> path_in_project(const std::string& given) {
  std::string path = normal_path(given);
  std::string why = "it begins with /";
  const bool is_absolute = given.starts_with('/') && !path.empty();
  if (path.empty() || (!is_absolute && TreePath::parse(path, &why))) return path;
  return fail(ErrorCode::invalid_argument, "'" + given.substr(0, 200) + "' is no path in the project: " + why,
              "name it from the project's top, as list does");
}

Result<WorkFiles> WorkFiles::open(const std::string& root) {
  UniqueFd fd(::open(root.c_str(), kDirectory));
  if (!fd) return fail(error_from_errno(errno, "open " + root));
  return WorkFiles(std::move(fd));
}

struct WorkFiles::WalkItem {
  std::string path;
  bool is_directory = false;
  Entry entry = {};
};

struct WorkFiles::Walk {
  const std::string& after;
  const std::size_t most;
  std::size_t depth = 0;
  Listing found = {};

  /// Whether the item, or something below it, may belong to the page.
  [[nodiscard]] bool wants(const WalkItem& item) const {
    if (after.empty() || comes_before(after, item.path)) return true;
    return item.is_directory && is_at_or_below(after, item.path);
  }
};

/// The items of a directory that may belong to the page. Closes the directory before returning, so that a walk does not
/// hold a descriptor per level.
Result<std::vector<WorkFiles::WalkItem>> WorkFiles::items_in(const Walk& walk, const std::string& directory) const {
  std::vector<WalkItem> items;
  const UniqueFd fd(open_beneath(root_.get(), directory, kDirectory));
  if (!fd && is_not_there(errno)) return items;  // it has gone meanwhile
  if (!fd) return fail(error_from_errno(errno, "open " + directory));
  PLAYFS_TRY(const auto names, clone::PlainDirectory::names(fd.get(), directory));
  std::size_t files = 0;
  for (const clone::Name& name : names) {
    if (name.is_other || why_not_a_component(name.text)) continue;
    WalkItem item{joined(directory, name.text), name.is_directory};
    if (!walk.wants(item)) continue;
    struct stat info {};
    if (!item.is_directory && fstatat(fd.get(), name.text.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!item.is_directory) item.entry = described(item.path, info);
    items.push_back(std::move(item));
    if (!items.back().is_directory && ++files > walk.most) break;
  }
  return items;
}

Status WorkFiles::walk(Walk& walk, const std::string& directory) const {
  PLAYFS_TRY(auto items, items_in(walk, directory));
  for (WalkItem& item : items) {
    if (item.is_directory && walk.depth < kDeepest) {
      ++walk.depth;
      PLAYFS_CHECK(this->walk(walk, item.path));
      --walk.depth;
    } else if (!item.is_directory) {
      if (walk.found.entries.size() == walk.most) walk.found.goes_on = true;
      else walk.found.entries.push_back(std::move(item.entry));
    }
    if (walk.found.goes_on) return {};
  }
  return {};
}

Result<WorkFiles::Listing> WorkFiles::list(const std::string& top, const std::string& after, std::size_t most) const {
  const UniqueFd fd(open_beneath(root_.get(), top, kDirectory));
  Walk whole{after, most};
  if (fd) {
    PLAYFS_CHECK(walk(whole, top));
    return std::move(whole.found);
  }
  if (!is_not_there(errno)) return fail(error_from_errno(errno, "open " + top));
  PLAYFS_TRY(const Place place, place_of(top, false));
  struct stat info {};
  if (fstatat(place.directory.get(), place.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || S_ISDIR(info.st_mode))
    return fail(not_there(top));
  whole.found.entries.push_back(described(top, info));
  return std::move(whole.found);
}

Result<std::string> WorkFiles::read(const std::string& path) const {
  const UniqueFd file(open_beneath(root_.get(), path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file && is_not_there(errno)) return fail(not_there(path));
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0) return fail(error_from_errno(errno, "open " + path));
  if (S_ISDIR(info.st_mode)) return fail(ErrorCode::is_a_directory, "'" + path + "' is a directory");
  if (!S_ISREG(info.st_mode)) return fail(not_there(path));
  if (info.st_size > static_cast<off_t>(kLargest))
    return fail(ErrorCode::file_too_big,
                "'" + path + "' has " + std::to_string(info.st_size) + " bytes, too many for this tool");
  return read_at(file.get(), 0, static_cast<std::size_t>(info.st_size));
}

Result<WorkFiles::Place> WorkFiles::place_of(const std::string& path, bool creates) const {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash);
  const std::string name = path.substr(slash == std::string::npos ? 0 : slash + 1);
  UniqueFd directory(open_beneath(root_.get(), folder, kDirectory));
  if (directory) return Place{std::move(directory), name};
  if (errno != ENOENT || !creates)
    return fail(is_not_there(errno) ? Error{ErrorCode::not_found, "there is no directory '" + folder + "'"}
                                    : error_from_errno(errno, "open " + folder));
  PLAYFS_TRY(const Place above, place_of(folder, true));
  if (mkdirat(above.directory.get(), above.name.c_str(), 0777) != 0 && errno != EEXIST)
    return fail(error_from_errno(errno, "create " + folder));
  directory = UniqueFd(open_beneath(root_.get(), folder, kDirectory));
  if (!directory) return fail(error_from_errno(errno, "open " + folder));
  return Place{std::move(directory), name};
}

Result<bool> WorkFiles::write(const std::string& path, const std::string& content,
                              std::optional<bool> executable) const {
  PLAYFS_TRY(const Place place, place_of(path, true));
  const int in = place.directory.get();
  PLAYFS_TRY(const auto before, look(in, place.name));
  if (before && S_ISDIR(before->st_mode)) return fail(is_directory(path));
  if (before && !S_ISREG(before->st_mode))
    return fail(ErrorCode::invalid_argument, "'" + path + "' is a link", "delete it first, to have a file there");
  auto written = put(in, place.name, [&](const std::string& temporary) {
    return fill(in, temporary, content, before ? &*before : nullptr, executable);
  });
  if (!written) return fail(written.error().while_doing("write " + path));
  return !before;
}

Status WorkFiles::replace(const std::string& path, FileMode mode, const std::string& content,
                          const std::function<Status()>& check) const {
  PLAYFS_TRY(const Place place, place_of(path, true));
  const int in = place.directory.get();
  PLAYFS_TRY(const auto before, look(in, place.name));
  if (before && S_ISDIR(before->st_mode) && unlinkat(in, place.name.c_str(), AT_REMOVEDIR) != 0)
    return fail(is_directory(path));
  auto make = [&](const std::string& temporary) -> Status {
    const struct stat* file = before && S_ISREG(before->st_mode) ? &*before : nullptr;
    if (mode != FileMode::symlink) return fill(in, temporary, content, file, mode == FileMode::executable);
    if (symlinkat(content.c_str(), in, temporary.c_str()) == 0) return {};
    return fail(error_from_errno(errno, "create a link"));
  };
  if (auto written = put(in, place.name, make, check); !written)
    return fail(written.error().while_doing("write " + path));
  return {};
}

Status WorkFiles::remove(const std::string& path) const {
  PLAYFS_TRY(const Place place, place_of(path, false));
  if (unlinkat(place.directory.get(), place.name.c_str(), 0) == 0) return {};
  if (errno == ENOENT) return fail(not_there(path));
  return fail(error_from_errno(errno, "delete " + path));
}

Status WorkFiles::remove_empty_directories_above(const std::string& path) const {
  for (std::size_t slash = path.rfind('/'); slash != std::string::npos && slash > 0;
       slash = path.rfind('/', slash - 1)) {
    const std::string directory = path.substr(0, slash);
    const auto place = place_of(directory, false);
    if (!place && place.error().code == ErrorCode::not_found) continue;
    if (!place) return fail(place.error());
    if (unlinkat(place->directory.get(), place->name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) continue;
    if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) return {};
    return fail(error_from_errno(errno, "remove the directory " + directory));
  }
  return {};
}

}  // namespace playfs::app
