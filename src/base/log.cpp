#include "base/log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

#include "base/fd.h"
#include "base/text.h"

namespace playfs {

namespace {

/// Standard error may be a pipe that nobody reads: lines that it cannot take at once are dropped and counted, so
/// logging never blocks. There is no writer thread, because it would not survive a fork.
class StandardError final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    pollfd end{STDERR_FILENO, POLLOUT, 0};
    if (poll(&end, 1, 0) == 0) {
      ++left_out_;
      return;
    }
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::string text;
    if (left_out_ > 0) text = fmt::format("({} lines dropped: nobody read them)\n", std::exchange(left_out_, 0));
    // A pipe that polls writable accepts PIPE_BUF bytes without blocking.
    text.append(line.data(), std::min(line.size(), kMostBytes - text.size() - 1));
    if (!text.ends_with('\n')) text += '\n';
    static_cast<void>(write_all(STDERR_FILENO, text));
  }
  void flush_() override {}

 private:
  static constexpr std::size_t kMostBytes = PIPE_BUF;
  std::size_t left_out_ = 0;
};

spdlog::logger& logger() {
  static const auto to_stderr = [] {
    auto created = std::make_shared<spdlog::logger>("playfs", std::make_shared<StandardError>());
    created->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
    created->set_level(spdlog::level::warn);
    created->flush_on(spdlog::level::info);
    return created;
  }();
  return *to_stderr;
}

}  // namespace

void set_log_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug: logger().set_level(spdlog::level::debug); return;
    case LogLevel::info: logger().set_level(spdlog::level::info); return;
    case LogLevel::warning: logger().set_level(spdlog::level::warn); return;
    case LogLevel::error: logger().set_level(spdlog::level::err); return;
  }
}

Status log_to_file(const std::string& path) {
  // spdlog would create the file with the umask's mode; a log is private to its user.
  UniqueFd created(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!created) return fail(error_from_errno(errno, "open " + path));
  try {
    logger().sinks() = {std::make_shared<spdlog::sinks::basic_file_sink_mt>(path)};
    logger().set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
  } catch (const spdlog::spdlog_ex& error) {
    return fail(ErrorCode::io, error.what());
  }
  return {};
}

void log_debug(std::string_view line) { logger().debug("{}", escape_for_terminal(line)); }
void log_info(std::string_view line) { logger().info("{}", escape_for_terminal(line)); }
void log_warning(std::string_view line) { logger().warn("{}", escape_for_terminal(line)); }
void log_error(std::string_view line) { logger().error("{}", escape_for_terminal(line)); }

}  // namespace playfs
