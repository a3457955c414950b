// Decides when to retry a request, as a pure function without clock or sleep.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/result.h"

namespace playfs::net {

struct RetryPolicy {
  int attempts = 4;  ///< in total; rate-limited ones do not count
  std::chrono::milliseconds first_delay{250};
  std::chrono::milliseconds longest_delay{8'000};
  /// The longest that one call waits for rate limits in total; beyond that it fails, reporting the requested wait.
  std::chrono::seconds longest_obeyed{20};
  /// The longest that a call continues without a response, over all attempts.
  std::chrono::seconds longest_call{60};
};

/// The outcome of an attempt, after its response was classified.
struct Attempt {
  int number = 1;  ///< counted from 1, without rate-limited attempts
  Error error;
  bool repeatable = true;              ///< repeating does no harm
  std::chrono::nanoseconds paused{0};  ///< time this call has waited for rate limits
  std::chrono::nanoseconds tried{0};   ///< time spent otherwise
};

/// The delay before the next attempt, or nullopt to give up and report the error. `random` is uniform in [0, 2^64) and
/// spreads clients that failed together. Retried: unreachable, timed_out, 5xx, and rate_limited after the wait that the
/// service requested (never sooner).
std::optional<std::chrono::nanoseconds> retry_delay(const RetryPolicy& policy, const Attempt& attempt,
                                                    std::uint64_t random);

}  // namespace playfs::net
