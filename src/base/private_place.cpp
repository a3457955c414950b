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
#include "base/shell.h"

namespace playfs {

namespace {

/// An open descriptor of what is at a path (of a link itself), so that what was checked is what is changed, even if the
/// path is replaced in between. O_PATH, since closing any other descriptor of a database would drop its locks
/// (sqlite.cpp).
struct Pinned {
  UniqueFd fd;
  struct stat attributes {};

  [[nodiscard]] unsigned mode() const { return attributes.st_mode & 07777; }
  [[nodiscard]] bool others_write() const { return (mode() & kOthersWrite) != 0; }
};

Result<Pinned> pin(const std::string& path) {
  Pinned pinned{UniqueFd(open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC))};
  if (!pinned.fd || fstat(pinned.fd.get(), &pinned.attributes) != 0)
    return fail(error_from_errno(errno, "stat " + path));
  return pinned;
}

Status take_from_others(const Pinned& pinned, const std::string& path, unsigned now) {
  // fchmod() does not accept an O_PATH descriptor. /proc may be missing, but for a file there is no other way.
  const bool is_directory = S_ISDIR(pinned.attributes.st_mode);
  if ((is_directory && fchmodat(pinned.fd.get(), ".", now, 0) == 0) ||
      chmod(("/proc/self/fd/" + std::to_string(pinned.fd.get())).c_str(), now) == 0) {
    log_warning(fmt::format("others could write to {}: its mode was {:o} and is {:o} now", path, pinned.mode(), now));
    return {};
  }
  const int problem = errno;
  if (problem == EROFS) return {};  // nobody can write there
  const std::string what = fmt::format("others can write to {} (mode {:o})", path, pinned.mode());
  Error error = problem == ENOENT
                    ? Error{ErrorCode::permission_denied, what + ", and without /proc this cannot be changed"}
                    : error_from_errno(problem, what + ": chmod");
  error.hint = "chmod go-w " + shell_word(path);
  return fail(std::move(error));
}

/// The target of a link that belongs to this user, who may keep the state directory on another disk; for anything else,
/// the path itself.
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
  PLAYFS_TRY(const Pinned pinned, pin(directory));
  if (!S_ISDIR(pinned.attributes.st_mode)) return fail(ErrorCode::not_a_directory, directory + " is not a directory");
  if (pinned.attributes.st_uid != geteuid())
    return fail(ErrorCode::permission_denied, directory + " belongs to another user",
                "remove it, or choose another place with the XDG_*_HOME variables");
  if (!pinned.others_write()) return {};
  if ((pinned.mode() & (S_ISVTX | S_ISGID)) != 0)  // as /tmp, or a group's directory: others are meant to write there
    return fail(
        ErrorCode::permission_denied,
        fmt::format("{} is for several users (mode {:o}), and what is kept there is for one", directory, pinned.mode()),
        "choose another directory, such as one in it that is yours alone");
  return take_from_others(pinned, directory, 0700);
}

Status check_may_become_private(const std::string& directory, const std::string& file) {
  struct stat attributes {};
  if (stat(directory.c_str(), &attributes) != 0 || (attributes.st_mode & kOthersWrite) == 0) return {};
  if (lstat((directory + "/" + file).c_str(), &attributes) == 0) return {};
  std::error_code problem;
  if (std::filesystem::is_empty(directory, problem)) return {};
  if (problem) return fail(error_from_errno(problem.value(), "list " + directory));
  return fail(ErrorCode::permission_denied,
              directory + " is for something else: others can write to it, and it holds other files and no " + file,
              "choose another directory, such as a new one");
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
  auto pinned = pin(path);
  if (!pinned && pinned.error().code == ErrorCode::not_found) return {};
  if (!pinned) return fail(std::move(pinned).error());
  if (!S_ISREG(pinned->attributes.st_mode)) return fail(ErrorCode::permission_denied, path + " is not a regular file");
  // Applies to root too: what root adds beside it would belong to root and lock out the owner.
  if (pinned->attributes.st_uid != geteuid())
    return fail(ErrorCode::permission_denied, path + " belongs to another user", "run this as that user");
  return pinned->others_write() ? take_from_others(*pinned, path, 0600) : Status();
}

}  // namespace playfs
