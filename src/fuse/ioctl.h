// Maps the ioctls of include/playfs/ioctl.h between C structs and the vfs's values.
#pragma once

#include <string_view>

#include "fuse/request.h"

namespace playfs::fuse {

/// Checks and translates the struct, calls the file system, and answers with the struct filled in. `input` is what the
/// kernel copied from the caller; its size is the one encoded in the command, since only restricted ioctls exist here.
void serve_ioctl(vfs::FileSystem& file_system, vfs::NodeId node, unsigned command, std::string_view input,
                 Request request);

}  // namespace playfs::fuse
