#include "app/tree_compare.h"

#include <sys/stat.h>
#include <sys/xattr.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>

namespace playfs::app {

namespace {

namespace fs = std::filesystem;

using Listing = std::map<std::string, mode_t>;

Result<Listing> list(const std::string& directory) {
  Listing listing;
  std::error_code problem;
  for (fs::directory_iterator entry(directory, problem), end; !problem && entry != end; entry.increment(problem)) {
    struct stat attributes {};
    if (lstat(entry->path().c_str(), &attributes) == 0) listing[entry->path().filename().string()] = attributes.st_mode;
  }
  if (problem && problem.value() != ENOENT && problem.value() != ENOTDIR)
    return fail(error_from_errno(problem.value(), "list " + directory));
  return listing;
}

/// Identifies the content; nullopt if it would have to be read.
std::optional<std::string> identity(const std::string& path, mode_t mode) {
  std::array<char, 4096> value{};
  ssize_t size = S_ISLNK(mode) ? readlink(path.c_str(), value.data(), value.size())
                               : getxattr(path.c_str(), "user.playfs.hash", value.data(), value.size());
  if (size <= 0) return std::nullopt;
  return std::string(value.data(), static_cast<std::size_t>(size));
}

class Comparison {
 public:
  Comparison(std::string before, std::string after) : before_(std::move(before)), after_(std::move(after)) {}

  Status compare(const std::string& below) {
    PLAYFS_TRY(Listing before, list(before_ + "/" + below));
    PLAYFS_TRY(Listing after, list(after_ + "/" + below));
    for (const auto& [name, mode] : before) {
      auto found = after.find(name);
      PLAYFS_CHECK(entry(below + name, mode, found == after.end() ? std::nullopt : std::optional(found->second)));
    }
    for (const auto& [name, mode] : after)
      if (!before.contains(name)) PLAYFS_CHECK(entry(below + name, std::nullopt, mode));
    return {};
  }

  std::set<std::string> take() { return std::move(found_); }

 private:
  Status entry(const std::string& path, std::optional<mode_t> before, std::optional<mode_t> after) {
    auto is_directory = [](const std::optional<mode_t>& mode) { return mode && S_ISDIR(*mode); };
    auto is_file = [](const std::optional<mode_t>& mode) { return mode && (S_ISREG(*mode) || S_ISLNK(*mode)); };
    if (is_directory(before) || is_directory(after)) PLAYFS_CHECK(compare(path + "/"));
    if (is_file(before) != is_file(after) || (is_file(before) && !same(path, *before, *after))) found_.insert(path);
    return {};
  }

  [[nodiscard]] bool same(const std::string& path, mode_t before, mode_t after) const {
    if ((before & (S_IFMT | S_IXUSR)) != (after & (S_IFMT | S_IXUSR))) return false;
    auto old_identity = identity(before_ + "/" + path, before);
    return old_identity && old_identity == identity(after_ + "/" + path, after);
  }

  const std::string before_, after_;
  std::set<std::string> found_;
};

}  // namespace

Result<std::set<std::string>> differing_paths(const std::string& before, const std::string& after) {
  Comparison comparison(before, after);
  PLAYFS_CHECK(comparison.compare(""));
  return comparison.take();
}

}  // namespace playfs::app
