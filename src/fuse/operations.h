// libfuse's table of operations over a vfs::FileSystem: decode, call, reply.
#pragma once

#include <atomic>
#include <cstdint>

#include "fuse/libfuse.h"
#include "fuse/request.h"
#include "vfs/file_system.h"

namespace playfs::fuse {

/// What fuse_req_userdata() points to. InFlight comes first: interrupts expect it there.
struct SessionContext : InFlight {
  explicit SessionContext(vfs::FileSystem& served) : file_system(served) {}
  vfs::FileSystem& file_system;
  bool read_only = false;                       ///< the whole mount; set before serving, like the next
  bool keeps_links = true;                      ///< the kernel caches symlink targets
  std::atomic<std::uint64_t> init_request = 0;  ///< the kernel's INIT, until it is answered; see handshake.h
  std::atomic<bool> takes_limit = false;        ///< whether that INIT offers to agree on a time limit
  unsigned request_limit_s = 0;                 ///< after which the kernel aborts the connection; 0: none
};

const fuse_lowlevel_ops& operations();

}  // namespace playfs::fuse
