#include "vfs/drive.h"

namespace playfs::vfs {

bool is_worth_recording(ErrorCode code) {
  switch (code) {
    case ErrorCode::corrupt:
    case ErrorCode::refused_input:
    case ErrorCode::protocol:
    case ErrorCode::io:
    case ErrorCode::internal:
    case ErrorCode::unreachable:
    case ErrorCode::timed_out:
    case ErrorCode::offline:
    case ErrorCode::rate_limited:
    case ErrorCode::unauthorized:
    case ErrorCode::no_space:
    case ErrorCode::quota_exceeded:
    case ErrorCode::file_too_big:
    case ErrorCode::stale:
    case ErrorCode::record_too_large:
    case ErrorCode::busy: return true;
    case ErrorCode::not_found:
    case ErrorCode::already_exists:
    case ErrorCode::not_a_directory:
    case ErrorCode::is_a_directory:
    case ErrorCode::not_empty:
    case ErrorCode::read_only:
    case ErrorCode::invalid_argument:
    case ErrorCode::name_too_long:
    case ErrorCode::not_permitted:
    case ErrorCode::permission_denied:
    case ErrorCode::not_supported:
    case ErrorCode::no_attribute:
    case ErrorCode::too_many_links:
    case ErrorCode::loop:
    case ErrorCode::cross_device:
    case ErrorCode::no_data:
    case ErrorCode::out_of_range:
    case ErrorCode::interrupted: return false;
  }
  return true;
}

void watch_the_time(Mount& mount, const OperationPtr& op) {
  if (!op->limit) return;
  mount.executor().post_after(*op->limit, [weak = std::weak_ptr(op)] {
    auto late = weak.lock();
    if (!late) return;
    late->note(kOutOfTime);
    late->out_of_time.cancel();
  });
}

Error as_out_of_time(const Operation& op, Error error) {
  if (error.code != ErrorCode::interrupted || !op.noted(kOutOfTime)) return error;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*op.limit).count();
  error.code = ErrorCode::timed_out;
  error.message = "no answer within " + std::to_string(seconds) +
                  " s; the kernel aborts the whole mount if a request takes much longer "
                  "(fs.fuse.default_request_timeout, fs.fuse.max_request_timeout)";
  error.hint = "try again: data received so far is kept, and the operation continues";
  error.retry_after = std::chrono::seconds(1);
  return error;
}

}  // namespace playfs::vfs
