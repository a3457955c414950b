#include "fuse/errno_table.h"

#include <cerrno>

namespace playfs::fuse {

int errno_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_found: return ENOENT;
    case ErrorCode::already_exists: return EEXIST;
    case ErrorCode::not_a_directory: return ENOTDIR;
    case ErrorCode::is_a_directory: return EISDIR;
    case ErrorCode::not_empty: return ENOTEMPTY;
    case ErrorCode::read_only: return EROFS;
    case ErrorCode::invalid_argument: return EINVAL;
    case ErrorCode::name_too_long: return ENAMETOOLONG;
    case ErrorCode::not_permitted: return EPERM;
    case ErrorCode::permission_denied:
    case ErrorCode::unauthorized: return EACCES;
    case ErrorCode::busy:
    case ErrorCode::conflict: return EBUSY;
    case ErrorCode::stale: return ESTALE;
    case ErrorCode::not_supported: return EOPNOTSUPP;
    case ErrorCode::no_attribute: return ENODATA;
    case ErrorCode::too_many_links: return EMLINK;
    case ErrorCode::loop: return ELOOP;
    case ErrorCode::cross_device: return EXDEV;
    case ErrorCode::no_data: return ENXIO;
    case ErrorCode::record_too_large: return EMSGSIZE;
    case ErrorCode::file_too_big: return EFBIG;
    case ErrorCode::no_space: return ENOSPC;
    case ErrorCode::quota_exceeded: return EDQUOT;
    case ErrorCode::out_of_range: return ERANGE;
    case ErrorCode::rate_limited: return EAGAIN;
    case ErrorCode::unreachable:
    case ErrorCode::offline: return EHOSTUNREACH;
    case ErrorCode::timed_out: return ETIMEDOUT;
    case ErrorCode::interrupted: return EINTR;
    // An errno cannot explain these; .playfs/errors.ndjson does.
    case ErrorCode::protocol:
    case ErrorCode::corrupt:
    case ErrorCode::refused_input:
    case ErrorCode::io:
    case ErrorCode::internal: return EIO;
  }
  return EIO;
}

}  // namespace playfs::fuse
