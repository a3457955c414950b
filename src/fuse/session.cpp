#include "fuse/session.h"

#include <linux/fuse.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <string_view>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/program_path.h"
#include "base/text.h"
#include "fuse/handshake.h"
#include "fuse/inotify_watcher.h"
#include "fuse/operations.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX asks the program to declare it

namespace playfs::fuse {

namespace {

/// Wakes the loop from its read of /dev/fuse if the mount was only detached and others keep it alive.
constexpr int kWakeSignal = SIGUSR2;

/// For answers once everything has been cancelled: they no longer need the network, only the local disk.
constexpr std::chrono::seconds kLastAnswers{30};

/// libfuse's messages, which would go to stderr, are for the operator's log. Users get ours.
void log_of_libfuse(fuse_log_level, const char* format, va_list arguments) {
  char line[512];
  vsnprintf(line, sizeof line, format, arguments);
  std::string_view text(line);
  while (text.ends_with('\n')) text.remove_suffix(1);
  log_info(text);
}

Status run_fusermount(const std::string& mountpoint, bool lazy) {
  std::vector<const char*> arguments = {"fusermount3", "-u", "-q"};
  if (lazy) arguments.push_back("-z");
  arguments.insert(arguments.end(), {"--", mountpoint.c_str(), nullptr});
  pid_t child = 0;
  if (int failed = posix_spawnp(&child, "fusermount3", nullptr, nullptr, const_cast<char**>(arguments.data()), environ))
    return fail(error_from_errno(failed, "run fusermount3"));
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return fail(error_from_errno(errno, "wait for fusermount3"));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return fail(ErrorCode::busy, "cannot unmount " + mountpoint + ": it is in use, or not yours",
              "close the programs that use it (fuser -m " + mountpoint + " lists them) and try again");
}

bool has_fusermount() {
  return access("/usr/bin/fusermount3", X_OK) == 0 || is_in_path("fusermount3");  // libfuse's order
}

Status why_no_mount(const MountOptions& options) {
  struct stat attributes {};
  if (stat(options.mountpoint.c_str(), &attributes) != 0) return fail(error_from_errno(errno, options.mountpoint));
  if (!S_ISDIR(attributes.st_mode)) return fail(ErrorCode::not_a_directory, options.mountpoint + " is not a directory");
  if (options.allow_other && geteuid() != 0)
    return fail(ErrorCode::permission_denied, "mounting " + options.mountpoint + " failed",
                "allow_other needs the line user_allow_other in /etc/fuse.conf");
  const std::string refused = "mounting at " + options.mountpoint + " was refused: ";
  constexpr const char* cure = "start the container with --device /dev/fuse --cap-add SYS_ADMIN";
  if (geteuid() == 0) return fail(ErrorCode::not_permitted, refused + "this container's root may not mount", cure);
  if (!has_fusermount())
    return fail(ErrorCode::not_permitted, refused + "only root may mount, and fusermount3 is missing",
                "install fusermount3 (package fuse3)");
  if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
    return fail(ErrorCode::not_permitted,
                refused + "only root may mount, and no_new_privs keeps fusermount3 from becoming root", cure);
  return fail(ErrorCode::not_permitted, refused + "fusermount3 could not do it",
              "mount at a directory that you own; where that does not help, " + std::string(cure));
}

}  // namespace

std::optional<int> passed_device(const std::string& mountpoint) {
  constexpr std::string_view folder = "/dev/fd/";
  if (!mountpoint.starts_with(folder)) return std::nullopt;
  int number = -1;
  const char* const end = mountpoint.data() + mountpoint.size();
  const auto read = std::from_chars(mountpoint.data() + folder.size(), end, number);
  return read.ec == std::errc() && read.ptr == end && number >= 0 ? std::optional(number) : std::nullopt;
}

Status unmount(const std::string& mountpoint, bool lazy) {
  if (umount2(mountpoint.c_str(), UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0) return {};
  // Others than root may unmount in a namespace of their own.
  if (errno == EPERM && geteuid() != 0) return run_fusermount(mountpoint, lazy);
  return fail(error_from_errno(errno, "unmount " + mountpoint));
}

struct Session::State final : vfs::KernelNotifier {
  State(vfs::FileSystem& file_system, std::string where)
      : context(file_system), mountpoint(std::move(where)), is_passed(passed_device(mountpoint).has_value()) {}

  // The kernel need not know the node that changed, so ENOENT is not an error here.
  void entry_changed(vfs::NodeId parent, const std::string& name) override {
    fuse_lowlevel_notify_inval_entry(session, parent, name.c_str(), name.size());
  }
  bool all_names_changed() override {
    constexpr std::int32_t kIncEpoch = 8;  // FUSE_NOTIFY_INC_EPOCH, since Linux 6.16, missing from older headers
    const fuse_out_header message{sizeof message, kIncEpoch, 0};
    return write(fuse_session_fd(session), &message, sizeof message) == sizeof message || errno != EINVAL;
  }
  void node_changed(vfs::NodeId node, std::int64_t offset) override {
    fuse_lowlevel_notify_inval_inode(session, node, offset, 0);
  }

  SessionContext context;
  std::string mountpoint;
  const bool is_passed;  ///< somebody else mounted it, and will unmount it
  fuse_session* session = nullptr;
  std::atomic<bool> stopping = false;
  std::atomic<bool> detached = false;
  std::atomic<bool> running = false;
  bool has_unanswered = false;
  std::atomic<pthread_t> loop_thread{};
  std::shared_ptr<InotifyWatcher> watcher;
};

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Session>> Session::mount(vfs::FileSystem& file_system, const MountOptions& options) {
  fuse_set_log_func(log_of_libfuse);
  std::string settings =
      "fsname=" + escape_for_mount(options.source) + ",subtype=playfs,default_permissions,nosuid,nodev";
  if (options.allow_other) settings += ",allow_other";
  if (options.read_only) settings += ",ro";
  if (options.no_exec) settings += ",noexec";
  if (options.synchronous) settings += ",sync";
  std::vector<std::string> words = {"playfs", "-o", settings};
  std::vector<char*> pointers;
  pointers.reserve(words.size());
  for (auto& word : words) pointers.push_back(word.data());
  fuse_args arguments = FUSE_ARGS_INIT(static_cast<int>(pointers.size()), pointers.data());

  auto state = std::make_unique<State>(file_system, options.mountpoint);
  state->context.read_only = options.read_only;
  state->context.keeps_links = options.keeps_links;
  const fuse_lowlevel_ops& table = operations();
  state->session = fuse_session_new(&arguments, &table, sizeof table, static_cast<InFlight*>(&state->context));
  fuse_opt_free_args(&arguments);
  if (!state->session) return fail(ErrorCode::internal, "libfuse refused the mount options: " + settings);
  if (fuse_session_mount(state->session, options.mountpoint.c_str()) != 0) {
    fuse_session_destroy(state->session);
    return fail(why_no_mount(options).error());
  }
  std::unique_ptr<Session> session(new Session(std::move(state)));
  session->state_->context.request_limit_s = request_limit_of_kernel();
  PLAYFS_CHECK(complete_handshake(session->state_->session));
  const std::string& seen_at = session->state_->is_passed ? options.seen_at : options.mountpoint;
  Result<std::shared_ptr<InotifyWatcher>> watcher = fail(ErrorCode::not_found, "this mount cannot be seen from here");
  if (!seen_at.empty()) watcher = InotifyWatcher::start(seen_at);
  if (watcher) session->state_->watcher = std::move(*watcher);
  else log_warning(watcher.error().message + "; requests in control files end at a pause instead of at the close");
  return session;
}

void Session::unmount_at_last() {
  if (!state_->detached) fuse_session_unmount(state_->session);
}

bool Session::has_unanswered() const { return state_->has_unanswered; }

Session::~Session() {
  unmount_at_last();
  fuse_session_destroy(state_->session);
  // Once the connection has ended: a lookup of the watcher's would wait forever in a mount that nobody serves.
  if (state_->watcher) state_->watcher->stop();
}

bool Session::was_aborted(const State& state) {
  struct statfs usage {};
  return !state.stopping && !state.is_passed && statfs(state.mountpoint.c_str(), &usage) != 0 && errno == ENOTCONN;
}

Status Session::run() {
  // The handler does nothing: the interruption is the message.
  struct sigaction wake {};
  wake.sa_handler = [](int) {};
  sigaction(kWakeSignal, &wake, nullptr);

  state_->loop_thread = pthread_self();
  state_->running = true;
  int ended = state_->stopping ? 0 : fuse_session_loop(state_->session);
  state_->running = false;

  state_->context.cancel_all();
  state_->has_unanswered = !state_->context.wait_until_empty(kLastAnswers);
  if (state_->has_unanswered) log_error("some requests were unanswered at the unmount");
  if (was_aborted(*state_))
    return fail(ErrorCode::io, "the kernel aborted the connection of " + state_->mountpoint,
                "a request took longer than fs.fuse.max_request_timeout, or somebody aborted it; mount again");
  if (ended < 0) return fail(error_from_errno(-ended, "serving " + state_->mountpoint));
  return {};
}

void Session::stop() {
  if (state_->stopping.exchange(true)) return;
  // A clean unmount ends the loop's read. A mount in use is detached; its users get errors once this process ends.
  if (state_->is_passed) {
    fuse_session_exit(state_->session);
  } else if (!unmount(state_->mountpoint, false)) {
    auto detached = unmount(state_->mountpoint, true);
    state_->detached = detached.has_value();
    if (!detached) log_warning(detached.error().message);
    fuse_session_exit(state_->session);
  }
  while (state_->running) {
    pthread_kill(state_->loop_thread, kWakeSignal);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

std::optional<std::chrono::milliseconds> Session::request_limit() const {
  if (state_->context.request_limit_s == 0) return std::nullopt;
  // The kernel counts from the caller's request, and checks only now and then.
  return std::chrono::milliseconds(std::int64_t{state_->context.request_limit_s} * 600);
}

vfs::KernelNotifier& Session::notifier() { return *state_; }

std::shared_ptr<vfs::CloseWatcher> Session::close_watcher() const { return state_->watcher; }

}  // namespace playfs::fuse
