#include "runtime/relayed_command.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "base/fd.h"
#include "base/program_path.h"

namespace playfs::runtime {

namespace {

constexpr int kNotFound = 127, kNotExecutable = 126, kAfterSignal = 128;  // as shells do
constexpr std::array kRelayed{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH, SIGUSR1, SIGUSR2};

/// Which group of processes has the terminal, while that is not this one.
class Terminal {
 public:
  Terminal() : line_(open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)), is_ours_(has()) {}
  /// A program that made another group its own may have ended without giving the terminal back.
  void take_back() const {
    if (!is_ours_ || has()) return;
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGTTOU);  // for asking in the background
    pthread_sigmask(SIG_BLOCK, &set, &before);
    tcsetpgrp(line_.get(), getpgrp());
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

 private:
  [[nodiscard]] bool has() const { return line_ && tcgetpgrp(line_.get()) == getpgrp(); }

  const UniqueFd line_;
  const bool is_ours_;
};

/// Blocks the signals while it lives, and takes them one by one.
class Signals {
 public:
  Signals() {
    sigemptyset(&taken_);
    for (const int number : kRelayed) sigaddset(&taken_, number);
    sigaddset(&taken_, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &taken_, &blocked_before_);
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;  // ignored, children would end without a trace
    sigaction(SIGCHLD, &usual, &child_before_);
  }
  ~Signals() { put_back(); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// For the program, which gets all as this process got it.
  void put_back() const {
    sigaction(SIGCHLD, &child_before_, nullptr);
    pthread_sigmask(SIG_SETMASK, &blocked_before_, nullptr);
  }
  [[nodiscard]] siginfo_t next() const {
    siginfo_t info{};
    while (sigwaitinfo(&taken_, &info) < 0) continue;
    return info;
  }

 private:
  sigset_t taken_{}, blocked_before_{};
  struct sigaction child_before_ {};
};

/// The terminal sent it to the whole group. A hangup goes to the session's leader too, which may be this process.
bool came_to_all(const siginfo_t& info) { return info.si_code == SI_KERNEL && info.si_signo != SIGHUP; }

class Running {
 public:
  Running(pid_t program, const Signals& signals, const Terminal& terminal)
      : program_(program), signals_(signals), terminal_(terminal) {}

  CommandEnd wait() {
    CommandEnd end;
    while (!has_ended(end)) {
      const siginfo_t info = signals_.next();
      if (info.si_signo == SIGCHLD) continue;
      if (!came_to_all(info)) kill(program_, info.si_signo);
      else if (info.si_signo == SIGINT) was_interrupted_ = true;
    }
    terminal_.take_back();
    return end;
  }

 private:
  bool has_ended(CommandEnd& end) const {
    int how = 0;
    while (waitpid(program_, &how, WNOHANG | WUNTRACED) > 0) {
      if (WIFSTOPPED(how)) {
        stop_as_well(WSTOPSIG(how));
        continue;
      }
      end.code = WIFEXITED(how) ? WEXITSTATUS(how) : kAfterSignal + WTERMSIG(how);
      end.interrupted = was_interrupted_ && WIFSIGNALED(how) && WTERMSIG(how) == SIGINT;
      return true;
    }
    return false;
  }

  /// Only for stops by the terminal, where a shell takes over. Anyone else who stops the program may continue it
  /// without our knowing.
  void stop_as_well(int signal) const {
    if (signal != SIGTSTP && signal != SIGTTIN && signal != SIGTTOU) return;
    terminal_.take_back();
    kill(getpid(), SIGSTOP);
  }

  const pid_t program_;
  const Signals& signals_;
  const Terminal& terminal_;
  bool was_interrupted_ = false;
};

/// In the child. Returns only if it cannot: errno.
int execute(const std::vector<std::string>& words, const std::string& directory,
            const std::map<std::string, std::string>& variables) {
  if (chdir(directory.c_str()) != 0) return errno;
  setenv("PWD", directory.c_str(), 1);
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  execvp(pointers[0], pointers.data());
  // A directory of PATH that this user may not search says nothing about the program.
  const bool is_missing = errno == EACCES && words.front().find('/') == std::string::npos && !is_in_path(words.front());
  return is_missing ? ENOENT : errno;
}

}  // namespace

Result<CommandEnd> run_relayed(const std::vector<std::string>& words, const std::string& directory,
                               const std::map<std::string, std::string>& variables) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail(error_from_errno(errno, "pipe"));
  UniqueFd reading(ends[0]), writing(ends[1]);
  const Terminal terminal;
  const Signals signals;
  const pid_t program = fork();
  if (program < 0) return fail(error_from_errno(errno, "fork"));
  if (program == 0) {
    signals.put_back();
    const int failed = execute(words, directory, variables);
    (void)write_all(writing.get(), std::string_view(reinterpret_cast<const char*>(&failed), sizeof failed));
    _exit(failed == ENOENT ? kNotFound : kNotExecutable);
  }
  writing = UniqueFd();
  int failed = 0;
  ssize_t got = 0;
  while ((got = read(reading.get(), &failed, sizeof failed)) < 0 && errno == EINTR) continue;
  CommandEnd end = Running(program, signals, terminal).wait();
  if (got == sizeof failed) end.not_started = error_from_errno(failed, "run " + words.front());
  return end;
}

}  // namespace playfs::runtime
