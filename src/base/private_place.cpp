#include "base/private_place.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/fd.h"
#include "base/log.h"

namespace playfs {

namespace {

/// After a chmod() that returned `result`.
Status told_of_chmod(int result, const std::string& path, unsigned before, unsigned now) {
  if (result == 0) {
    log_warning(fmt::format("others could write to {}: its mode was {:o} and is {:o} now", path, before, now));
    return {};
  }
  if (errno == EROFS) return {};  // then nobody writes
  return fail(error_from_errno(errno, fmt::format("others can write to {} (mode {:o}): chmod", path, before)));
}

/// A user may keep the state directory on another disk: where a link of this user leads, else the path itself.
std::string followed(const std::string& path) {
  struct stat attributes {};
  if (lstat(path.c_str(), &attributes) != 0 || !S_ISLNK(attributes.st_mode) || attributes.st_uid != geteuid())
    return path;
  std::error_code unknown;
  const auto real = std::filesystem::canonical(path, unknown);
  return unknown ? path : real.string();
}

}  // namespace

Status keep_private(const std::string& directory) {
  struct stat attributes {};
  if (lstat(directory.c_str(), &attributes) != 0) return fail(error_from_errno(errno, "stat " + directory));
  if (!S_ISDIR(attributes.st_mode)) return fail(ErrorCode::not_a_directory, directory + " is not a directory");
  if (attributes.st_uid != geteuid())
    return fail(ErrorCode::permission_denied, directory + " belongs to another user",
                "remove it, or choose another place with the XDG_*_HOME variables");
  const unsigned mode = attributes.st_mode & 07777;
  if ((mode & kOthersWrite) == 0) return {};
  if ((mode & (S_ISVTX | S_ISGID)) != 0)  // as /tmp, or a group's directory: others are meant to write there
    return fail(ErrorCode::permission_denied,
                fmt::format("{} is for several users (mode {:o}), and what is kept there is for one", directory, mode),
                "choose another directory, such as one in it that is yours alone");
  // Through a descriptor: others may have put a link in its place.
  UniqueFd opened(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened) return fail(error_from_errno(errno, "open " + directory));
  return told_of_chmod(fchmod(opened.get(), 0700), directory, mode, 0700);
}

Status make_private_directory_below(const std::string& top, const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string prefix = path.substr(0, end);
    if (mkdir(prefix.c_str(), 0700) != 0 && errno != EEXIST) return fail(error_from_errno(errno, "create " + prefix));
    const bool is_last = end == std::string::npos;
    if (prefix.size() >= top.size()) PLAYFS_CHECK(keep_private(is_last ? prefix : followed(prefix)));
    if (is_last) return {};
  }
}

Status keep_file_private(const std::string& path) {
  struct stat attributes {};
  if (lstat(path.c_str(), &attributes) != 0 || !S_ISREG(attributes.st_mode)) return {};
  const unsigned mode = attributes.st_mode & 07777;
  if ((mode & kOthersWrite) == 0) return {};
  return told_of_chmod(chmod(path.c_str(), 0600), path, mode, 0600);
}

}  // namespace playfs
