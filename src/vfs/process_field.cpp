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

}  // namespace playfs::vfs
