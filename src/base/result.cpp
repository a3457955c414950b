#include "base/result.h"

#include <cerrno>
#include <system_error>

namespace playfs {

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_found: return "not_found";
    case ErrorCode::already_exists: return "already_exists";
    case ErrorCode::not_a_directory: return "not_a_directory";
    case ErrorCode::is_a_directory: return "is_a_directory";
    case ErrorCode::not_empty: return "not_empty";
    case ErrorCode::read_only: return "read_only";
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::name_too_long: return "name_too_long";
    case ErrorCode::not_permitted: return "not_permitted";
    case ErrorCode::permission_denied: return "permission_denied";
    case ErrorCode::unauthorized: return "unauthorized";
    case ErrorCode::busy: return "busy";
    case ErrorCode::stale: return "stale";
    case ErrorCode::not_supported: return "not_supported";
    case ErrorCode::no_attribute: return "no_attribute";
    case ErrorCode::too_many_links: return "too_many_links";
    case ErrorCode::loop: return "loop";
    case ErrorCode::cross_device: return "cross_device";
    case ErrorCode::no_data: return "no_data";
    case ErrorCode::record_too_large: return "record_too_large";
    case ErrorCode::file_too_big: return "file_too_big";
    case ErrorCode::no_space: return "no_space";
    case ErrorCode::quota_exceeded: return "quota_exceeded";
    case ErrorCode::out_of_range: return "out_of_range";
    case ErrorCode::rate_limited: return "rate_limited";
    case ErrorCode::unreachable: return "unreachable";
    case ErrorCode::timed_out: return "timed_out";
    case ErrorCode::interrupted: return "interrupted";
    case ErrorCode::offline: return "offline";
    case ErrorCode::protocol: return "protocol";
    case ErrorCode::corrupt: return "corrupt";
    case ErrorCode::refused_input: return "refused_input";
    case ErrorCode::io: return "io";
    case ErrorCode::internal: return "internal";
  }
  return "internal";
}

bool is_retryable(ErrorCode code) {
  switch (code) {
    case ErrorCode::rate_limited:
    case ErrorCode::unreachable:
    case ErrorCode::timed_out:
    case ErrorCode::interrupted:
    case ErrorCode::busy:
    case ErrorCode::no_space:
    case ErrorCode::quota_exceeded: return true;
    default: return false;
  }
}

Error Error::while_doing(std::string_view what) const {
  Error wrapped = *this;
  wrapped.message = std::string(what) + ": " + message;
  return wrapped;
}

namespace {
ErrorCode code_from_errno(int errnum) {
  switch (errnum) {
    case ENOENT: return ErrorCode::not_found;
    case EEXIST: return ErrorCode::already_exists;
    case ENOTDIR: return ErrorCode::not_a_directory;
    case EISDIR: return ErrorCode::is_a_directory;
    case ENOTEMPTY: return ErrorCode::not_empty;
    case EROFS: return ErrorCode::read_only;
    case EINVAL: return ErrorCode::invalid_argument;
    case ENAMETOOLONG: return ErrorCode::name_too_long;
    case EPERM: return ErrorCode::not_permitted;
    case EACCES: return ErrorCode::permission_denied;
    case EBUSY: return ErrorCode::busy;
    case ESTALE: return ErrorCode::stale;
    case EOPNOTSUPP:
    case ENOSYS: return ErrorCode::not_supported;
    case ENODATA: return ErrorCode::no_attribute;
    case EMLINK: return ErrorCode::too_many_links;
    case ELOOP: return ErrorCode::loop;
    case EXDEV: return ErrorCode::cross_device;
    case ENXIO: return ErrorCode::no_data;
    case EFBIG: return ErrorCode::file_too_big;
    case ENOSPC: return ErrorCode::no_space;
    case EDQUOT: return ErrorCode::quota_exceeded;
    case ERANGE: return ErrorCode::out_of_range;
    case EAGAIN: return ErrorCode::rate_limited;
    case EMSGSIZE: return ErrorCode::record_too_large;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ECONNREFUSED: return ErrorCode::unreachable;
    case ETIMEDOUT: return ErrorCode::timed_out;
    case EINTR: return ErrorCode::interrupted;
    default: return ErrorCode::io;
  }
}
}  // namespace

Error error_from_errno(int errnum, std::string_view what) {
  return Error{code_from_errno(errnum),
               std::string(what) + ": " + std::generic_category().message(errnum),
               {},
               std::nullopt,
               0,
               {}};
}

}  // namespace playfs
