#include "runtime/secret_file.h"

#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "base/shell.h"

namespace playfs::runtime {

namespace {

constexpr std::size_t kLargestSecret = 4096;

/// With an ACL, the group bits of the mode are the ACL's mask, so they say nothing about the group: systemd uses an ACL
/// to hand a credential to a service's user.
bool is_for_others(int fd, const struct stat& info) {
  if ((info.st_mode & 07) != 0) return true;
  std::array<char, 4096> list{};
  const ssize_t size = fgetxattr(fd, "system.posix_acl_access", list.data(), list.size());
  if (size < 0) return errno == ERANGE || (info.st_mode & 070) != 0;
  posix_acl_xattr_header header{};
  if (static_cast<std::size_t>(size) < sizeof header) return true;
  std::memcpy(&header, list.data(), sizeof header);
  if (le32toh(header.a_version) != POSIX_ACL_XATTR_VERSION) return true;
  for (std::size_t at = sizeof header; at + sizeof(posix_acl_xattr_entry) <= static_cast<std::size_t>(size);
       at += sizeof(posix_acl_xattr_entry)) {
    posix_acl_xattr_entry entry{};
    std::memcpy(&entry, list.data() + at, sizeof entry);
    const uid_t user = le32toh(entry.e_id);
    switch (le16toh(entry.e_tag)) {
      case ACL_USER_OBJ:
      case ACL_MASK: continue;
      case ACL_USER:
        if (user == geteuid() || user == 0) continue;
        break;
      default: break;
    }
    if (entry.e_perm != 0) return true;
  }
  return false;
}

}  // namespace

Result<std::string> read_open_secret(int fd, const std::string& path, const std::string& what, std::size_t most) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return fail(error_from_errno(errno, what));
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::permission_denied, what + " is not a regular file");
  if (info.st_uid != geteuid() && info.st_uid != 0)
    return fail(ErrorCode::permission_denied, what + " belongs to another user");
  if (is_for_others(fd, info))
    return fail(ErrorCode::permission_denied, what + " is readable by others", "chmod 600 " + shell_word(path));
  if (static_cast<std::uint64_t>(info.st_size) > most) return fail(ErrorCode::file_too_big, what + " is too large");
  return read_at(fd, 0, most);
}

Result<std::string> read_secret_file(const std::string& path, const std::string& what) {
  UniqueFd opened(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!opened) return fail(error_from_errno(errno, what));
  PLAYFS_TRY(std::string secret, read_open_secret(opened.get(), path, what, kLargestSecret));
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  if (secret.empty()) return fail(ErrorCode::invalid_argument, what + " is empty");
  return secret;
}

}  // namespace playfs::runtime
