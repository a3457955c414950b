// Opens what lies below a directory, whatever others make of the names in between. Thread-safe; blocking.
#pragma once

#include <string>

namespace playfs {

/// openat2(2) that stays below `root` and follows no link, for an existing `path` ("": the root itself). A descriptor,
/// or negative with errno. Kernels before 5.6, and sandboxes that know no such call, get one openat(2) for each
/// component.
int open_beneath(int root, const std::string& path, int flags);

/// Whether errno says that nothing is there, or that it is reached through a link or a file.
bool is_not_there(int errnum);

}  // namespace playfs
