#include "app/mounted_tree.h"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

namespace playfs::app {

Result<std::optional<FileEntry>> entry_at(const std::string& path) {
  struct stat attributes {};
  if (lstat(path.c_str(), &attributes) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return fail(error_from_errno(errno, "stat " + path));
  }
  std::array<char, 4096> value{};
  FileEntry entry;
  if (S_ISLNK(attributes.st_mode)) {
    const ssize_t size = readlink(path.c_str(), value.data(), value.size());
    if (size < 0) return fail(error_from_errno(errno, "read the link " + path));
    entry.mode = FileMode::symlink;
    entry.inline_text.emplace(value.data(), static_cast<std::size_t>(size));
    return entry;
  }
  // A directory in a file's place: the files below it are separate.
  if (!S_ISREG(attributes.st_mode)) return std::nullopt;
  if ((attributes.st_mode & 0111) != 0) entry.mode = FileMode::executable;
  entry.size_claim = static_cast<std::uint64_t>(attributes.st_size);
  const ssize_t size = getxattr(path.c_str(), "user.playfs.hash", value.data(), value.size());
  if (size > 0) entry.hash_claim.assign(value.data(), static_cast<std::size_t>(size));
  // Stands for the content: entries without any would count as equal.
  entry.chunks.emplace_back(size > 0 ? entry.hash_claim : path);
  return entry;
}

Result<Manifest> list_tree(const std::string& directory) {
  namespace fs = std::filesystem;
  Manifest tree;
  std::error_code problem;
  for (fs::recursive_directory_iterator item(directory, problem), end; !problem && item != end;
       item.increment(problem)) {
    const std::string& path = item->path().native();
    if (auto entry = entry_at(path); entry && *entry)
      tree.files.emplace(path.substr(directory.size() + 1), **std::move(entry));
  }
  if (problem && problem.value() != ENOENT && problem.value() != ENOTDIR)
    return fail(error_from_errno(problem.value(), "list " + directory));
  return tree;
}

}  // namespace playfs::app
