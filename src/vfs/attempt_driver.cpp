#include "vfs/attempt_driver.h"

namespace playfs::vfs {

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
