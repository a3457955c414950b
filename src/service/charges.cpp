#include "service/charges.h"

#include <chrono>
#include <utility>

namespace playfs::service {

Error limit_reached(const Charge& charge, std::int64_t microseconds) {
  constexpr std::int64_t second = 1'000'000;
  Error error{ErrorCode::rate_limited, "write limit exceeded: " + charge.what};
  error.retry_after = std::chrono::seconds((microseconds + second - 1) / second);
  return error;
}

Error writes_not_allowed(const Charge& charge) {
  Error error{ErrorCode::rate_limited, "writes are not allowed here: " + charge.what};
  error.retry_after = charge.window;
  return error;
}

}  // namespace playfs::service
