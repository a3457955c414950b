#include "vfs/process_field.h"

#include <charconv>
#include <string>

#include "base/fd.h"

namespace playfs::vfs {

std::optional<pid_t> process_field(pid_t thread, std::string_view field) {
  const auto status = read_file("/proc/" + std::to_string(thread) + "/status", 16 << 10);
  if (!status) return std::nullopt;
  const std::string label = "\n" + std::string(field) + ":\t";
  const std::size_t at = status->find(label);
  if (at == std::string::npos) return std::nullopt;
  pid_t number = 0;
  const auto read = std::from_chars(status->data() + at + label.size(), status->data() + status->size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

std::uint64_t process_start(pid_t process) {
  // The name, in brackets, may contain anything. Behind it come the third field and the others.
  constexpr int kStart = 22 - 3;
  const auto stat = read_file("/proc/" + std::to_string(process) + "/stat", 4 << 10);
  const std::size_t name_end = stat ? stat->rfind(") ") : std::string::npos;
  if (name_end == std::string::npos) return 0;
  std::size_t at = name_end + 2;
  for (int field = 0; field < kStart && at != 0; ++field) at = stat->find(' ', at) + 1;
  std::uint64_t ticks = 0;
  std::from_chars(stat->data() + at, stat->data() + stat->size(), ticks);
  return ticks;
}

}  // namespace playfs::vfs
