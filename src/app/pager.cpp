#include "app/pager.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <streambuf>

#include "app/ignored_signal.h"
#include "base/fd.h"

namespace playfs::app {

namespace {

/// Writes to a descriptor; drops everything after an error.
class DescriptorBuffer final : public std::streambuf {
 public:
  explicit DescriptorBuffer(UniqueFd fd) : fd_(std::move(fd)) { setp(buffer_.data(), buffer_.data() + buffer_.size()); }
  ~DescriptorBuffer() override { flush(); }

 protected:
  int sync() override { return flush() ? 0 : -1; }
  int_type overflow(int_type character) override {
    if (!flush()) return traits_type::eof();
    if (!traits_type::eq_int_type(character, traits_type::eof())) sputc(traits_type::to_char_type(character));
    return traits_type::not_eof(character);
  }

 private:
  bool flush() {
    const char* at = pbase();
    while (at < pptr()) {
      ssize_t written = write(fd_.get(), at, static_cast<std::size_t>(pptr() - at));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      at += written;
    }
    setp(buffer_.data(), buffer_.data() + buffer_.size());
    return true;
  }

  UniqueFd fd_;
  std::array<char, 1 << 13> buffer_{};
};

std::string chosen_pager(const runtime::Io& io) {
  for (const char* name : {"PLAYFS_PAGER", "PAGER"})
    if (auto found = io.environment.find(name); found != io.environment.end()) return found->second;
  return "less";
}

/// -1 if it cannot be started.
pid_t start(const std::string& command, int input) {
  pid_t child = fork();
  if (child != 0) return child;
  if (dup2(input, STDIN_FILENO) < 0) _exit(127);
  setenv("LESS", "FRX", 0);
  execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
  _exit(127);
}

bool is_installed(const std::string& program) {
  return WEXITSTATUS(std::system(("command -v " + program + " >/dev/null 2>&1").c_str())) == 0;
}

}  // namespace

struct Pager::Running {
  IgnoredSignal interrupt{SIGINT};
  IgnoredSignal pipe{SIGPIPE};
  pid_t child = -1;
  std::unique_ptr<DescriptorBuffer> buffer;
  std::streambuf* before = nullptr;
};

Pager::Pager(CommandContext& context, bool wanted) : io_(context.io), out_(context.out) {
  if (!wanted || !io_.out_is_terminal || context.out.json()) return;
  std::string command = chosen_pager(io_);
  if (command.empty() || command == "cat" || (command == "less" && !is_installed(command))) return;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return;
  UniqueFd input(ends[0]), output(ends[1]);
  io_.out.flush();
  out_.progress_line("");
  // Before the signals are ignored here, which the child would inherit.
  pid_t child = start(command, input.get());
  if (child < 0) return;
  running_ = std::make_unique<Running>();
  running_->child = child;
  running_->buffer = std::make_unique<DescriptorBuffer>(std::move(output));
  running_->before = io_.out.rdbuf(running_->buffer.get());
  out_.set_paged(true);
}

Pager::~Pager() {
  if (!running_) return;
  io_.out.flush();
  io_.out.rdbuf(running_->before);
  io_.out.clear();  // it is fine for the reader to quit early
  running_->buffer.reset();
  int status = 0;
  while (waitpid(running_->child, &status, 0) < 0 && errno == EINTR) continue;
  out_.set_paged(false);
}

}  // namespace playfs::app
