// What /proc says of a process. Stateless.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>

namespace playfs::vfs {

/// The number in a field of /proc/THREAD/status, such as "PPid"; nullopt if the thread is gone or not ours to see.
std::optional<pid_t> process_field(pid_t thread, std::string_view field);

}  // namespace playfs::vfs
