#include "runtime/limited_child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

namespace playfs::runtime {

namespace {

constexpr std::chrono::duration<int, std::milli> kFarewell{1'000};  ///< for a killed child to end

/// Runs in the child, with only `line` open: it may be left behind, and must not keep its parent's pipes open.
[[noreturn]] void answer_on(int line, const std::function<std::string()>& act) {
  dup2(line, 0);
  close_range(1, ~0U, 0);
  if (chdir("/") != 0) _exit(EXIT_FAILURE);  // it must not keep a mount in use
  _exit(write_all(0, act()) ? EXIT_SUCCESS : EXIT_FAILURE);
}

}  // namespace

LimitedChild::LimitedChild(const std::function<std::string()>& act, std::chrono::milliseconds patience)
    : due_(std::chrono::steady_clock::now() + patience) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  answer_ = UniqueFd(ends[0]);
  UniqueFd line(ends[1]);
  child_ = fork();
  if (child_ == 0) answer_on(line.get(), act);
}

LimitedChild::LimitedChild(LimitedChild&& other) noexcept
    : due_(other.due_), child_(std::exchange(other.child_, -1)), answer_(std::move(other.answer_)) {}

LimitedChild::~LimitedChild() {
  if (child_ <= 0) return;
  kill(child_, SIGKILL);
  // The mount is in use until the child has ended. SIGKILL does not end a child whose request is being processed; such
  // a child is not waited for beyond kFarewell.
  pollfd ended{answer_.get(), 0, 0};
  poll(&ended, 1, kFarewell.count());
  waitpid(child_, nullptr, WNOHANG);
}

std::optional<std::string> LimitedChild::answer() {
  if (child_ <= 0) return std::nullopt;
  std::string text;
  for (bool more = true; more;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(due_ - std::chrono::steady_clock::now());
    pollfd ready{answer_.get(), POLLIN, 0};
    const int woken = poll(&ready, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (woken < 0 && errno == EINTR) continue;
    if (woken <= 0) return std::nullopt;
    std::array<char, 4096> piece{};
    const ssize_t size = read(answer_.get(), piece.data(), piece.size());
    if (size < 0 && errno == EINTR) continue;
    more = size > 0;
    if (more) text.append(piece.data(), static_cast<std::size_t>(size));
  }
  waitpid(std::exchange(child_, -1), nullptr, 0);
  return text;
}

}  // namespace playfs::runtime
