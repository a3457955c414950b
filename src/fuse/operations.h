// libfuse's table of operations over a vfs::FileSystem: decode, call, reply.
#pragma once

#include "fuse/libfuse.h"
#include "fuse/request.h"
#include "vfs/file_system.h"

namespace playfs::fuse {

/// What the operations find behind fuse_req_userdata(). InFlight comes first: interrupts look for it there.
struct Context : InFlight {
  explicit Context(vfs::FileSystem& served) : file_system(served) {}
  vfs::FileSystem& file_system;
};

const fuse_lowlevel_ops& operations();

}  // namespace playfs::fuse
