#include "app/mount_point.h"

#include <fcntl.h>
#include <sys/stat.h>
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

Result<std::string> real_path(const std::string& path) {
  std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), &std::free);
  if (!real) return fail(error_from_errno(errno, "find " + path));
  return std::string(real.get());
}

}  // namespace

Status check_fuse() {
  UniqueFd device(open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (device) return {};
  constexpr const char* hint =
      "modprobe fuse, or start the container with --device /dev/fuse --cap-add SYS_ADMIN; without it: playfs clone "
      "PROJECT DIR";
  if (errno == ENOENT || errno == ENXIO || errno == ENODEV)
    return fail(ErrorCode::not_supported,
                "/dev/fuse is missing: this kernel or container has no FUSE, so nothing can be mounted", hint);
  if (errno == EACCES || errno == EPERM)
    return fail(ErrorCode::permission_denied, "no permission to open /dev/fuse as this user or in this container",
                hint);
  return fail(error_from_errno(errno, "open /dev/fuse"));
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
  // First: told only that the directory is not empty, a user may add `nonempty`, and hang.
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
                "playfs umount " + shell_word(real));
  std::error_code unreadable;
  if (!nonempty && !std::filesystem::is_empty(real, unreadable) && !unreadable)
    return fail(ErrorCode::not_empty, real + " is not empty: a mount would hide its files",
                "use an empty directory, or -o nonempty");
  return real;
}

}  // namespace playfs::app
