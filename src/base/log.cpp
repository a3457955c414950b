#include "base/log.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/fd.h"
#include "base/text.h"

namespace playfs {

namespace {
spdlog::logger& logger() {
  static const auto to_stderr = [] {
    auto created = spdlog::stderr_logger_mt("playfs");
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
  // spdlog would create the file with the umask's mode; a log belongs to its user alone.
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
