#include "app/exit_code.h"

namespace playfs::app {

ExitCode exit_code_for(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_found: return ExitCode::not_found;
    case ErrorCode::invalid_argument: return ExitCode::usage;
    case ErrorCode::permission_denied:
    case ErrorCode::unauthorized:
    case ErrorCode::not_permitted: return ExitCode::forbidden;
    case ErrorCode::conflict: return ExitCode::branched;
    case ErrorCode::rate_limited: return ExitCode::pending;
    case ErrorCode::unreachable:
    case ErrorCode::timed_out:
    case ErrorCode::offline: return ExitCode::unreachable;
    case ErrorCode::already_exists:
    case ErrorCode::not_a_directory:
    case ErrorCode::is_a_directory:
    case ErrorCode::not_empty:
    case ErrorCode::read_only:
    case ErrorCode::name_too_long:
    case ErrorCode::busy:
    case ErrorCode::stale:
    case ErrorCode::not_supported:
    case ErrorCode::no_attribute:
    case ErrorCode::too_many_links:
    case ErrorCode::loop:
    case ErrorCode::cross_device:
    case ErrorCode::no_data:
    case ErrorCode::record_too_large:
    case ErrorCode::file_too_big:
    case ErrorCode::no_space:
    case ErrorCode::quota_exceeded:
    case ErrorCode::out_of_range:
    case ErrorCode::interrupted:
    case ErrorCode::protocol:
    case ErrorCode::corrupt:
    case ErrorCode::refused_input:
    case ErrorCode::io:
    case ErrorCode::internal: return ExitCode::failed;
  }
  return ExitCode::failed;
}

}  // namespace playfs::app
