#include "app/work_tree.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "app/json_fields.h"
#include "fuse/errno_table.h"
#include "publish/outcome.h"
#include "wire/json.h"

namespace playfs::app {

namespace {

template <class T>
T prepared() {
  T request{};
  request.size = sizeof request;
  request.version = PLAYFS_IOCTL_VERSION;
  return request;
}

/// The last error in a log of errors, not older than `since`, of a call that ended with this errno.
std::optional<Error> last_error_in(std::string text, int errnum, WallTime since) {
  while (!text.empty()) {
    text.erase(text.find_last_not_of('\n') + 1);
    const auto begin = text.rfind('\n') + 1;  // npos + 1 is 0
    auto line = wire::parse_json(std::string_view(text).substr(begin));
    text.erase(begin);
    const JsonObject* fields = line ? line->object() : nullptr;
    if (fields == nullptr) continue;
    auto time = parse_iso8601(text_of(*fields, "time"));
    if (!time || *time < since) return std::nullopt;
    Error error{publish::code_named(text_of(*fields, "code")),
                text_of(*fields, "message"),
                text_of(*fields, "hint"),
                {},
                0,
                {}};
    if (fuse::errno_of(error.code) != errnum) continue;
    if (auto seconds = number_of(*fields, "retry_after_s")) error.retry_after = std::chrono::seconds(seconds);
    return error;
  }
  return std::nullopt;
}

/// As the mount wrote it down. The file grows for its readers a moment after the call was answered.
std::optional<Error> last_error(const std::string& mount_point, int errnum, WallTime since) {
  constexpr int kLooks = 20;
  constexpr std::chrono::milliseconds kBetween{25};
  for (int look = 0; look < kLooks; ++look) {
    if (look > 0) std::this_thread::sleep_for(kBetween);
    auto text = read_file(mount_point + "/.playfs/errors.ndjson", 16 << 20);
    if (!text) return std::nullopt;
    if (auto error = last_error_in(*std::move(text), errnum, since)) return error;
  }
  return std::nullopt;
}

/// Names of directories that were created so that something could be asked of a path that is gone.
class Scaffold {
 public:
  ~Scaffold() {
    for (auto made = made_.rbegin(); made != made_.rend(); ++made) rmdir(made->c_str());
  }
  Status parents_of(const std::string& path) {
    for (auto slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
      std::string parent = path.substr(0, slash);
      if (mkdir(parent.c_str(), 0755) == 0) made_.push_back(parent);
      else if (errno != EEXIST) return fail(error_from_errno(errno, "reach " + parent));
    }
    return {};
  }

 private:
  std::vector<std::string> made_;
};

}  // namespace

Result<WorkTree> WorkTree::open(const std::string& path) {
  PLAYFS_TRY(MountedPlace place, find_project_at(path));
  UniqueFd root(::open(place.work.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) return fail(error_from_errno(errno, "open the work tree " + place.work));
  return WorkTree(std::move(place), std::move(root));
}

Error WorkTree::why(int errnum, const std::string& what, WallTime since) const {
  if (errnum == ENOTTY)
    return Error{ErrorCode::not_supported,
                 what + ": " + place_.work + " is no writable work tree",
                 "mount without a revision",
                 {},
                 0,
                 {}};
  if (errnum == EINTR) return error_from_errno(errnum, what);
  auto told = last_error(place_.mount_point, errnum, since);
  if (!told && errnum == EINVAL)
    return Error{ErrorCode::not_supported,
                 what + ": the mount at " + place_.mount_point + " is of another version of playfs",
                 "playfs umount " + place_.mount_point + ", then mount it again",
                 {},
                 0,
                 {}};
  Error error = error_from_errno(errnum, what);
  if (told) {
    error = *std::move(told);
    error.message = what + ": " + error.message;
  }
  if (error.hint.empty()) error.hint = "playfs status " + place_.work;
  return error;
}

template <class T>
Status WorkTree::call(int fd, unsigned long request, T& argument, const std::string& what) const {
  // What is written down has microseconds.
  const WallTime since{SystemClock().wall().nanoseconds / 1000 * 1000};
  if (ioctl(fd, request, &argument) != 0) return fail(why(errno, what, since));
  return {};
}

Result<playfs_status> WorkTree::status() const {
  auto request = prepared<playfs_status>();
  PLAYFS_CHECK(call(root_.get(), PLAYFS_IOC_STATUS, request, "status"));
  return request;
}

Status WorkTree::commit(playfs_commit& request) const {
  request.size = sizeof request;
  request.version = PLAYFS_IOCTL_VERSION;
  return call(root_.get(), PLAYFS_IOC_COMMIT, request, "commit");
}

Result<playfs_update> WorkTree::update() const {
  auto request = prepared<playfs_update>();
  PLAYFS_CHECK(call(root_.get(), PLAYFS_IOC_UPDATE, request, "update"));
  return request;
}

Result<playfs_merge> WorkTree::merge(const std::string& revision) const {
  auto request = prepared<playfs_merge>();
  if (revision.size() >= sizeof request.revision)
    return fail(ErrorCode::not_found, "no revision can have the id " + revision);
  std::memcpy(request.revision, revision.data(), revision.size());
  PLAYFS_CHECK(call(root_.get(), PLAYFS_IOC_MERGE, request, "merge " + revision));
  return request;
}

Result<playfs_cancel> WorkTree::cancel() const {
  auto request = prepared<playfs_cancel>();
  PLAYFS_CHECK(call(root_.get(), PLAYFS_IOC_CANCEL, request, "cancel"));
  return request;
}

Result<std::uint32_t> WorkTree::discard_at(int fd, const std::string& path) const {
  auto request = prepared<playfs_discard>();
  PLAYFS_CHECK(call(fd, PLAYFS_IOC_DISCARD, request, "discard " + path));
  return request.discarded;
}

Result<std::uint32_t> WorkTree::discard(const std::string& path) const {
  // O_NONBLOCK for a fifo, which would wait for its other end. A symbolic link cannot be opened, and what it leads
  // to is not meant: the kernel only lets its name be asked about, so it is taken away and stands for a deletion.
  struct stat attributes {};
  bool link = lstat(path.c_str(), &attributes) == 0 && S_ISLNK(attributes.st_mode);
  if (link && unlink(path.c_str()) != 0) return fail(error_from_errno(errno, "discard " + path));
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file) return discard_at(file.get(), path);
  if (errno != ENOENT && errno != ENOTDIR) return fail(error_from_errno(errno, "open " + path));
  // A deleted path: something has to stand there for a moment to be asked about. Discarding takes it away again.
  Scaffold scaffold;
  PLAYFS_CHECK(scaffold.parents_of(path));
  file = UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return fail(error_from_errno(errno, "open " + path));
  auto discarded = discard_at(file.get(), path);
  if (!discarded) unlink(path.c_str());
  return discarded;
}

}  // namespace playfs::app
