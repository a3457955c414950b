#include "base/result.h"

#include <cerrno>
#include <system_error>

namespace playfs {

// `perhaps`: nobody knows whether later is worth a try. A malformed response may be a proxy's error page, which goes
// away, or a broken service, which does not. A disk error may be a loose cable. What an offline mount must not request,
// the next mount may.
ErrorTraits traits_of(ErrorCode code) {
  constexpr bool recorded = true;
  switch (code) {
    case ErrorCode::not_found: return {"not_found", Later::no, false, Reached::decision};
    case ErrorCode::already_exists: return {"already_exists", Later::no, false, Reached::decision};
    case ErrorCode::not_a_directory: return {"not_a_directory", Later::no, false, Reached::decision};
    case ErrorCode::is_a_directory: return {"is_a_directory", Later::no, false, Reached::decision};
    case ErrorCode::not_empty: return {"not_empty", Later::no, false, Reached::decision};
    case ErrorCode::read_only: return {"read_only", Later::no, false, Reached::decision};
    case ErrorCode::invalid_argument: return {"invalid_argument", Later::no, false, Reached::decision};
    case ErrorCode::name_too_long: return {"name_too_long", Later::no, false, Reached::decision};
    case ErrorCode::not_permitted: return {"not_permitted", Later::no, false, Reached::decision};
    case ErrorCode::permission_denied: return {"permission_denied", Later::no, false, Reached::decision};
    case ErrorCode::unauthorized: return {"unauthorized", Later::no, recorded, Reached::decision};
    case ErrorCode::busy: return {"busy", Later::yes, recorded, Reached::decision};
    case ErrorCode::conflict: return {"conflict", Later::no, recorded, Reached::decision};
    case ErrorCode::stale: return {"stale", Later::no, recorded, Reached::decision};
    case ErrorCode::not_supported: return {"not_supported", Later::no, false, Reached::decision};
    case ErrorCode::no_attribute: return {"no_attribute", Later::no, false, Reached::decision};
    case ErrorCode::too_many_links: return {"too_many_links", Later::no, false, Reached::decision};
    case ErrorCode::loop: return {"loop", Later::no, false, Reached::decision};
    case ErrorCode::cross_device: return {"cross_device", Later::no, false, Reached::decision};
    case ErrorCode::no_data: return {"no_data", Later::no, false, Reached::decision};
    case ErrorCode::record_too_large: return {"record_too_large", Later::no, recorded, Reached::decision};
    case ErrorCode::file_too_big: return {"file_too_big", Later::no, recorded, Reached::decision};
    case ErrorCode::no_space: return {"no_space", Later::yes, recorded, Reached::decision};
    case ErrorCode::quota_exceeded: return {"quota_exceeded", Later::yes, recorded, Reached::decision};
    case ErrorCode::out_of_range: return {"out_of_range", Later::no, false, Reached::decision};
    case ErrorCode::rate_limited: return {"rate_limited", Later::yes, recorded, Reached::no_use};
    case ErrorCode::unreachable: return {"unreachable", Later::yes, recorded, Reached::silence};
    case ErrorCode::timed_out: return {"timed_out", Later::yes, recorded, Reached::silence};
    case ErrorCode::interrupted: return {"interrupted", Later::yes, false, Reached::given_up};
    case ErrorCode::offline: return {"offline", Later::perhaps, recorded, Reached::nobody};
    case ErrorCode::protocol: return {"protocol", Later::perhaps, recorded, Reached::no_use};
    case ErrorCode::corrupt: return {"corrupt", Later::no, recorded, Reached::decision};
    case ErrorCode::refused_input: return {"refused_input", Later::no, recorded, Reached::decision};
    case ErrorCode::io: return {"io", Later::perhaps, recorded, Reached::decision};
    case ErrorCode::internal: return {"internal", Later::no, recorded, Reached::decision};
  }
  return traits_of(ErrorCode::internal);
}

ErrorCode code_named(std::string_view name) {
  for (int i = 0; i < static_cast<int>(ErrorCode::internal); ++i)
    if (name_of(static_cast<ErrorCode>(i)) == name) return static_cast<ErrorCode>(i);
  return ErrorCode::internal;
}

bool is_outage(ErrorCode code) {
  const Reached reached = traits_of(code).reached;
  return reached == Reached::nobody || reached == Reached::silence || reached == Reached::no_use;
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
  return Error{code_from_errno(errnum), std::string(what) + ": " + std::generic_category().message(errnum)};
}

}  // namespace playfs
