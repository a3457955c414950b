#include "runtime/daemon.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/descriptors.h"

namespace playfs::runtime {

namespace {

// The protocol: one byte for the outcome; after an error its code, message and hint, each ended by NUL.
constexpr char kReady = 'R', kFailed = 'F';

Result<std::string> read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(error_from_errno(errno, "wait for the daemon"));
    if (got == 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

Status await_child(UniqueFd line, pid_t child) {
  PLAYFS_TRY(std::string report, read_all(line.get()));
  if (!report.empty() && report.front() == kReady) return {};
  int how = 0;
  while (waitpid(child, &how, 0) < 0 && errno == EINTR) continue;
  if (report.size() < 2 || report.front() != kFailed) {
    std::string why = WIFSIGNALED(how) ? std::string("signal ") + strsignal(WTERMSIG(how))
                                       : "exit code " + std::to_string(WEXITSTATUS(how));
    return fail(ErrorCode::internal, "the daemon exited before it was ready: " + why,
                "the same command with -f, to see its messages");
  }
  auto code = static_cast<ErrorCode>(report[1]);
  std::string message = report.substr(2, report.find('\0', 2) - 2);
  std::string hint = report.substr(2 + message.size() + 1);
  hint.resize(std::strlen(hint.c_str()));
  return fail(code, std::move(message), std::move(hint));
}

}  // namespace

Status StartReport::ready(const std::string& log_path) {
  UniqueFd log(open(log_path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!log) return fail(error_from_errno(errno, "open " + log_path));
  if (dup2(log.get(), 1) < 0 || dup2(log.get(), 2) < 0) return fail(error_from_errno(errno, "redirect to " + log_path));
  // Not before: an automount of systemd's, or another's, lets only its own process group mount there.
  setsid();
  // The waiting command may have been killed; that is no reason to end the daemon.
  (void)write_all(line_.get(), std::string_view(&kReady, 1));
  line_ = UniqueFd();
  return {};
}

void StartReport::failed(const Error& error) {
  std::string text{kFailed, static_cast<char>(error.code)};
  text += error.message + '\0' + error.hint + '\0';
  (void)write_all(line_.get(), text);
  line_ = UniqueFd();
}

Result<Background> go_to_background(std::vector<int> kept) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail(error_from_errno(errno, "pipe"));
  UniqueFd reading(ends[0]), writing(ends[1]);
  pid_t child = fork();
  if (child < 0) return fail(error_from_errno(errno, "fork"));
  if (child > 0) {
    writing = UniqueFd();
    PLAYFS_CHECK(await_child(std::move(reading), child));
    return Background{{}, child};
  }
  reading = UniqueFd();
  kept.push_back(writing.get());
  close_inherited_descriptors(std::move(kept));
  if (chdir("/") != 0) return fail(error_from_errno(errno, "chdir /"));
  UniqueFd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (nothing) dup2(nothing.get(), 0);
  return Background{StartReport(std::move(writing)), 0};
}

}  // namespace playfs::runtime
