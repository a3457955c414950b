#include "runtime/private_mounts.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace playfs::runtime {

namespace {

/// 0, or errno.
int write_to(const char* path, const std::string& text) {
  const UniqueFd file(open(path, O_WRONLY | O_CLOEXEC));
  if (!file || write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) return errno;
  return 0;
}

/// A new user namespace maps no user or group; unmapped ones show as nobody.
int map_user_and_group(uid_t user, gid_t group) {
  auto same = [](auto id) { return std::to_string(id) + " " + std::to_string(id) + " 1"; };
  if (int failed = write_to("/proc/self/setgroups", "deny"); failed != 0) return failed;  // the kernel's condition
  if (int failed = write_to("/proc/self/uid_map", same(user)); failed != 0) return failed;
  return write_to("/proc/self/gid_map", same(group));
}

/// 0, or errno. After an error, half of it may be done.
int separate() {
  if (unshare(CLONE_NEWNS) != 0) {
    const uid_t user = geteuid();
    const gid_t group = getegid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return errno;
    if (int failed = map_user_and_group(user, group); failed != 0) return failed;
  }
  // Mounts made here are not visible outside; later mounts outside are visible here.
  return mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0 ? 0 : errno;
}

/// Tries it in a child, since a process cannot leave a namespace in which it has no rights.
int try_to_separate() {
  const pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) _exit(separate());
  int how = 0;
  while (waitpid(child, &how, 0) < 0)
    if (errno != EINTR) return errno;
  return WIFEXITED(how) ? WEXITSTATUS(how) : EPERM;  // a seccomp filter may also kill
}

bool is_set(const std::string& setting, char value) {
  auto text = read_file("/proc/sys/" + setting, 64);
  return text && !text->empty() && text->front() == value && (text->size() == 1 || (*text)[1] == '\n');
}

struct Refusal {
  const char *setting, *cure;  ///< a file below /proc/sys, and what is to be set
  char value;                  ///< that refuses
};

constexpr std::array kRefusals{
    Refusal{"user/max_user_namespaces", "user.max_user_namespaces=10000", '0'},
    Refusal{"user/max_mnt_namespaces", "user.max_mnt_namespaces=10000", '0'},
    Refusal{"kernel/unprivileged_userns_clone", "kernel.unprivileged_userns_clone=1", '0'},
    Refusal{"kernel/apparmor_restrict_unprivileged_userns", "kernel.apparmor_restrict_unprivileged_userns=0", '1'},
};

Status refused(int errnum) {
  Error error = error_from_errno(errnum, "user namespaces are refused here, and without one this user cannot mount");
  error.code = ErrorCode::not_permitted;
  for (const Refusal& refusal : kRefusals) {
    if (!is_set(refusal.setting, refusal.value)) continue;
    error.message += std::string(" (/proc/sys/") + refusal.setting + " is " + refusal.value + ")";
    error.hint = std::string("sudo sysctl ") + refusal.cure;
    return fail(std::move(error));
  }
  error.message += " (a chroot, or the seccomp filter or policy of a container)";
  error.hint = "start the container with --device /dev/fuse --cap-add SYS_ADMIN";
  return fail(std::move(error));
}

}  // namespace

Status separate_mounts() {
  int failed = try_to_separate();
  if (failed == 0) failed = separate();
  if (failed == 0) return {};
  return refused(failed);
}

}  // namespace playfs::runtime
