#include "runtime/probe.h"

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

namespace playfs::runtime {

namespace {

namespace fs = std::filesystem;

constexpr char kAnswers = 'a', kDead = 'd';
constexpr std::chrono::duration<int, std::milli> kFarewell{1'000};  ///< for a killed child to end

/// Not with stat(2): the kernel may have cached the root's attributes, and answers even if the mount is dead or hangs.
bool is_dead(std::string path) {
  struct statfs usage {};
  while (statfs(path.c_str(), &usage) != 0) {
    // ECONNABORTED: the process ended during the request.
    if (errno == ENOTCONN || errno == ECONNABORTED) return true;
    if (errno != ENOENT || path == "/") return false;
    path = fs::path(path).parent_path().string();  // a file to be created there would be in the same file system
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

/// Runs in the child, with only `line` open: it may be left behind, and must not keep its parent's pipes open.
[[noreturn]] void answer(int line, const std::string& path) {
  dup2(line, 0);
  close_range(1, ~0U, 0);
  if (chdir("/") != 0) _exit(EXIT_FAILURE);  // it must not keep a mount in use
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
  // The mount is in use until the child has ended. SIGKILL does not end a child whose request is being processed; such
  // a child is not waited for beyond kFarewell.
  pollfd ended{answer_.get(), 0, 0};
  poll(&ended, 1, kFarewell.count());
  waitpid(child_, nullptr, WNOHANG);
}

Probe::Answer Probe::found() {
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

Probe::Answer look_at(std::string path, const std::vector<MountEntry>& mounted) {
  constexpr std::array<std::string_view, 6> over_the_network = {"nfs", "cifs", "smb", "9p", "ceph", "afs"};
  const bool may_hang = std::any_of(mounted.begin(), mounted.end(), [&](const MountEntry& each) {
    const std::string_view type = each.type;
    return type == "fuse" || type == "fuseblk" || type.starts_with("fuse.") ||
           std::any_of(over_the_network.begin(), over_the_network.end(),
                       [&](std::string_view one) { return type.starts_with(one); });
  });
  if (may_hang) return look_at(std::move(path));
  return {Probe::State::answers, real_path_of(path)};
}

tl::unexpected<Error> silence_of(const std::string& path) {
  return fail(ErrorCode::timed_out, path + " does not answer: the process of a mount at or above it hangs",
              "kill that process, or detach the mount with fusermount3 -u -z DIR (findmnt -t fuse lists mounts)");
}

}  // namespace playfs::runtime
