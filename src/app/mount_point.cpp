#include "app/mount_point.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "app/mounted.h"
#include "base/fd.h"
#include "base/shell.h"
#include "fuse/session.h"
#include "runtime/probe.h"

namespace playfs::app {

namespace {

constexpr unsigned kFuseMajor = 10, kFuseMinor = 229;  // of /dev/fuse, for ever

Result<std::string> real_path(const std::string& path) {
  std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), &std::free);
  if (!real) return fail(error_from_errno(errno, "find " + path));
  return std::string(real.get());
}

}  // namespace

Status check_fuse() {
  UniqueFd device(open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (device) return {};
  constexpr const char* hint = "sudo modprobe fuse, or start the container with --device /dev/fuse --cap-add SYS_ADMIN";
  if (errno == ENOENT || errno == ENXIO || errno == ENODEV)
    return fail(with_other_ways(
        {ErrorCode::not_supported,
         "/dev/fuse is missing: this kernel or container has no FUSE, so nothing can be mounted", hint}));
  if (errno == EACCES || errno == EPERM)
    return fail(with_other_ways(
        {ErrorCode::permission_denied, "no permission to open /dev/fuse as this user or in this container", hint}));
  return fail(error_from_errno(errno, "open /dev/fuse"));
}

Error with_other_ways(Error refusal) {
  refusal.hint +=
      (refusal.hint.empty() ? "" : "; or ") +
      std::string(
          "playfs clone PROJECT DIR (a plain directory, which needs no FUSE), playfs run PROJECT -- COMMAND (needs "
          "/dev/fuse, but neither root nor fusermount3), or the mount point /dev/fd/N (a /dev/fuse that the "
          "container's "
          "runtime has opened and mounted)");
  return refusal;
}

Status check_passed_device(int fd) {
  const std::string name = "/dev/fd/" + std::to_string(fd);
  struct stat attributes {};
  if (fstat(fd, &attributes) != 0) return fail(error_from_errno(errno, name));
  if (!S_ISCHR(attributes.st_mode) || attributes.st_rdev != makedev(kFuseMajor, kFuseMinor))
    return fail(ErrorCode::invalid_argument, name + " is not an open /dev/fuse");
  pollfd device{fd, POLLIN, 0};
  if (poll(&device, 1, 0) > 0 && (device.revents & POLLERR) != 0)
    return fail(ErrorCode::invalid_argument, name + " is not mounted: nobody has passed it to mount(2), or it is gone",
                "mount(SOURCE, DIR, \"fuse.playfs\", MS_NOSUID | MS_NODEV, \"fd=" + std::to_string(fd) +
                    ",rootmode=40000,user_id=UID,group_id=GID,default_permissions\"), then start playfs");
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0) return fail(error_from_errno(errno, name));
  return {};
}

std::optional<std::string> mount_point_of(int fd) {
  auto text = read_file("/proc/self/fdinfo/" + std::to_string(fd), 4096);
  auto table = read_mount_table();
  constexpr std::string_view field = "fuse_connection:\t";
  const auto found = text ? text->find(field) : std::string::npos;
  if (found == std::string::npos || !table) return std::nullopt;
  const auto begin = found + field.size();
  const std::string device = "0:" + text->substr(begin, text->find('\n', begin) - begin);
  for (const runtime::MountEntry& mount : *table)
    if (mount.device == device && mount.root == "/") return mount.mount_point;
  return std::nullopt;
}

Status detach_dead_mount(const std::string& path) {
  if (runtime::look_at(path).state != runtime::Probe::State::dead) return {};
  PLAYFS_TRY(auto table, read_mount_table());
  const runtime::MountEntry* mount = runtime::mount_holding(table, path);
  if (mount == nullptr || mount->mount_point != path || mount->type != kMountType)
    return fail(ErrorCode::busy, path + " is a dead mount of another file system",
                "fusermount3 -u -z " + shell_word(path));
  auto detached = fuse::unmount(path, true);
  if (!detached) return fail(detached.error().while_doing("detach the dead mount at " + path));
  return {};
}

Result<std::string> prepare_mount_point(const std::string& path, bool nonempty, const std::vector<OwnPlace>& own) {
  const auto looked = runtime::look_at(path);
  if (looked.state == runtime::Probe::State::silent) return runtime::silence_of(path);
  // Checked first: a user who is only told that the directory is not empty may add `nonempty`, and the mount would
  // hang.
  PLAYFS_TRY(auto mounts, read_mount_table());
  PLAYFS_CHECK(check_own_places(own, looked.real, mounts));
  PLAYFS_CHECK(check_fuse());
  if (looked.state == runtime::Probe::State::dead) PLAYFS_CHECK(detach_dead_mount(looked.real));

  struct stat attributes {};
  if (stat(path.c_str(), &attributes) != 0) {
    if (errno == ENOENT) return fail(ErrorCode::not_found, path + " does not exist", "mkdir -p " + shell_word(path));
    return fail(error_from_errno(errno, "stat " + path));
  }
  if (!S_ISDIR(attributes.st_mode))
    return fail(ErrorCode::not_a_directory, path + " is not a directory", "use an empty directory");
  PLAYFS_TRY(std::string real, real_path(path));
  PLAYFS_TRY(auto table, read_mount_table());
  const runtime::MountEntry* mount = runtime::mount_holding(table, real);
  if (mount != nullptr && mount->mount_point == real && mount->type == kMountType)
    return fail(ErrorCode::already_exists, mount->source + " is already mounted at " + real,
                "playfs umount " + shell_operand(real));
  std::error_code unreadable;
  if (!nonempty && !std::filesystem::is_empty(real, unreadable) && !unreadable)
    return fail(ErrorCode::not_empty, real + " is not empty: a mount would hide its files",
                "use an empty directory, or -o nonempty");
  return real;
}

}  // namespace playfs::app
