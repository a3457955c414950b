// What /proc says of a process. Stateless.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace playfs::vfs {

/// The number in a field of /proc/THREAD/status, such as "PPid"; nullopt if the thread is gone or not ours to see.
std::optional<pid_t> process_field(pid_t thread, std::string_view field);

/// When the process started, in ticks since the machine did; 0 if it is gone. Tells processes of one id apart.
std::uint64_t process_start(pid_t process);

}  // namespace playfs::vfs
