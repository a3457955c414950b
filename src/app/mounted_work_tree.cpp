#include "app/mounted_work_tree.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/shell.h"
#include "publish/outcome.h"

namespace playfs::app {

namespace {

template <class T>
T prepared() {
  T request{};
  request.size = sizeof request;
  request.version = PLAYFS_IOCTL_VERSION;
  return request;
}

}  // namespace

Result<MountedWorkTree> MountedWorkTree::open(const std::string& path) {
  PLAYFS_TRY(MountedPlace place, find_project_at(path));
  UniqueFd root(::open(place.work.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) return fail(error_from_errno(errno, "open the work tree " + place.work));
  return MountedWorkTree(std::move(place), std::move(root));
}

Error MountedWorkTree::why(int errnum, const std::string& what, const playfs_error& told) const {
  const std::string code(told.code, strnlen(told.code, sizeof told.code));
  if (code.empty() && (errnum == ENOTTY || errnum == EINVAL))
    return Error{ErrorCode::not_supported,
                 what + ": the mount at " + place_.mount_point + " is from another version of playfs",
                 "playfs umount " + shell_word(place_.mount_point) + ", then mount again"};
  if (code.empty()) return error_from_errno(errnum, what);
  if (errnum == ENOTTY)
    return Error{ErrorCode::not_supported, what + ": " + place_.work + " is not a writable work tree",
                 "mount without revision="};
  Error error{code_named(code), what + ": " + std::string(told.message, strnlen(told.message, sizeof told.message)),
              std::string(told.hint, strnlen(told.hint, sizeof told.hint))};
  if (told.retry_after_s > 0) error.retry_after = std::chrono::seconds(told.retry_after_s);
  if (error.hint.empty()) error.hint = "playfs status " + shell_word(place_.work);
  return error;
}

bool is_out_of_time(const Status& called) {
  return !called && called.error().code == ErrorCode::timed_out && called.error().retry_after;
}

template <class T>
Status MountedWorkTree::call(unsigned long request, T& argument, const std::string& what) const {
  if (ioctl(root_.get(), request, &argument) != 0) return fail(why(errno, what, argument.error));
  return {};
}

template <class T>
Status MountedWorkTree::call_until_it_ends(unsigned long request, T& argument, const std::string& what) const {
  for (const T asked = argument;; argument = asked) {
    auto called = call(request, argument, what);
    if (!is_out_of_time(called)) return called;
    std::this_thread::sleep_for(*called.error().retry_after);
  }
}

Result<playfs_status> MountedWorkTree::status() const {
  auto request = prepared<playfs_status>();
  PLAYFS_CHECK(call(PLAYFS_IOC_STATUS, request, "status"));
  return request;
}

Status MountedWorkTree::commit(playfs_commit& request) const {
  request.size = sizeof request;
  request.version = PLAYFS_IOCTL_VERSION;
  return call(PLAYFS_IOC_COMMIT, request, "commit");
}

Result<playfs_update> MountedWorkTree::update() const {
  auto request = prepared<playfs_update>();
  PLAYFS_CHECK(call_until_it_ends(PLAYFS_IOC_UPDATE, request, "update"));
  return request;
}

Result<playfs_merge> MountedWorkTree::merge(const std::string& revision) const {
  auto request = prepared<playfs_merge>();
  if (revision.size() >= sizeof request.revision)
    return fail(ErrorCode::not_found, "not a valid revision id: " + revision);
  std::memcpy(request.revision, revision.data(), revision.size());
  PLAYFS_CHECK(call_until_it_ends(PLAYFS_IOC_MERGE, request, "merge " + revision));
  return request;
}

Result<playfs_cancel> MountedWorkTree::cancel() const {
  auto request = prepared<playfs_cancel>();
  PLAYFS_CHECK(call(PLAYFS_IOC_CANCEL, request, "cancel"));
  return request;
}

Result<std::uint32_t> MountedWorkTree::discard(const std::string& path, bool dry_run) const {
  auto request = prepared<playfs_discard>();
  const std::string named = path.empty() ? "." : path;
  if (named.size() >= sizeof request.path)
    return fail(ErrorCode::name_too_long,
                "the path is longer than " + std::to_string(sizeof request.path - 1) + " bytes");
  std::memcpy(request.path, named.data(), named.size());
  request.flags = dry_run ? PLAYFS_DISCARD_DRY_RUN : 0;
  PLAYFS_CHECK(call(PLAYFS_IOC_DISCARD, request, "discard " + named));
  return request.discarded;
}

}  // namespace playfs::app
