#include "clone/git_guard.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"

namespace playfs::clone {

namespace {

/// Makes git take a directory for a repository, without any commit. Nothing to do if there is no such directory: a link
/// in its place may lead anywhere.
Status mark_as_repository(int folder, const char* name) {
  constexpr std::string_view head = "ref: refs/heads/none\n";
  const UniqueFd directory(openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory || faccessat(directory.get(), ".git/HEAD", F_OK, AT_SYMLINK_NOFOLLOW) == 0) return {};
  for (const char* each : {".git", ".git/objects", ".git/refs"})
    if (mkdirat(directory.get(), each, 0700) != 0 && errno != EEXIST)
      return fail(error_from_errno(errno, std::string("create ") + name + "/" + each));
  const UniqueFd file(openat(directory.get(), ".git/HEAD", O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return fail(error_from_errno(errno, std::string("create ") + name + "/.git/HEAD"));
  return write_all_at(file.get(), head, 0);
}

}  // namespace

Status guard_from_git(const std::string& folder) {
  const std::string rules = folder + "/.gitignore";
  if (access(rules.c_str(), F_OK) != 0) PLAYFS_CHECK(write_file_atomically(rules, "*\n"));
  const UniqueFd opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened) return fail(error_from_errno(errno, "open " + folder));
  for (const char* each : {kGuardedFolder, "lost+found"}) PLAYFS_CHECK(mark_as_repository(opened.get(), each));
  return {};
}

}  // namespace playfs::clone
