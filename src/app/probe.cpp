#include "app/probe.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace playfs::app {

namespace {

namespace fs = std::filesystem;

constexpr char kAnswers = 'a', kDead = 'd';
constexpr std::chrono::duration<int, std::milli> kFarewell{1'000};  ///< for a child that was killed

/// Not by stat(2): the kernel may know the attributes of the root, and goes on answering for the dead and the hanging.
bool is_dead(std::string path) {
  struct statfs usage {};
  while (statfs(path.c_str(), &usage) != 0) {
    // ECONNABORTED: the question was under way when the process ended.
    if (errno == ENOTCONN || errno == ECONNABORTED) return true;
    if (errno != ENOENT || path == "/") return false;
    path = fs::path(path).parent_path().string();  // what is to be made there would be of the same file system
  }
  return false;
}

std::string real_path_of(const std::string& path) {
  std::error_code unresolved;
  if (leads_up(path)) {
    auto real = fs::canonical(path, unresolved);
    return unresolved ? path : real.string();
  }
  if (auto real = fs::weakly_canonical(path, unresolved); !unresolved) return real.string();
  auto parent = fs::canonical(fs::path(path).parent_path(), unresolved);
  return unresolved ? path : (parent / fs::path(path).filename()).string();
}

/// In the child, with nothing open but `line`: it may be left behind, and would keep a pipe of its parent's open.
[[noreturn]] void answer(int line, const std::string& path) {
  dup2(line, 0);
  close_range(1, ~0U, 0);
  if (chdir("/") != 0) _exit(EXIT_FAILURE);  // from a mount that would be in use by it
  const char state = is_dead(path) ? kDead : kAnswers;
  _exit(write_all(0, state + real_path_of(path)) ? EXIT_SUCCESS : EXIT_FAILURE);
}

}  // namespace

Probe::Probe(std::string path) : path_(std::move(path)), begun_(std::chrono::steady_clock::now()) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  answer_ = UniqueFd(ends[0]);
  UniqueFd line(ends[1]);
  child_ = fork();
  if (child_ == 0) answer(line.get(), path_);
}

Probe::Probe(Probe&& other) noexcept
    : path_(std::move(other.path_)),
      begun_(other.begun_),
      child_(std::exchange(other.child_, -1)),
      answer_(std::move(other.answer_)) {}

Probe::~Probe() {
  if (child_ <= 0) return;
  kill(child_, SIGKILL);
  // Until it has ended the mount is in use. Who waits for an answer that is being worked on does not end by that, and
  // is not waited for: its end of the line is not closed in time.
  pollfd ended{answer_.get(), 0, 0};
  poll(&ended, 1, kFarewell.count());
  waitpid(child_, nullptr, WNOHANG);
}

Probe::Found Probe::found() {
  std::string text;
  for (bool more = child_ > 0; more;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(begun_ + kPatience - std::chrono::steady_clock::now());
    pollfd ready{answer_.get(), POLLIN, 0};
    const int woken = poll(&ready, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (woken < 0 && errno == EINTR) continue;
    if (woken <= 0) return {State::silent, path_};
    std::array<char, 4096> piece{};
    const ssize_t size = read(answer_.get(), piece.data(), piece.size());
    if (size < 0 && errno == EINTR) continue;
    more = size > 0;
    if (more) text.append(piece.data(), static_cast<std::size_t>(size));
  }
  if (child_ > 0) waitpid(std::exchange(child_, -1), nullptr, 0);
  if (text.empty()) return {State::silent, path_};
  return {text[0] == kDead ? State::dead : State::answers, text.substr(1)};
}

tl::unexpected<Error> silence_of(const std::string& path) {
  return fail(
      ErrorCode::timed_out,
      path + " does not answer: the process of a mount there, or on the way to it, hangs, so it was not looked at",
      "end that process, or detach the mount: fusermount3 -u -z DIR (findmnt -t fuse lists them)");
}

}  // namespace playfs::app
