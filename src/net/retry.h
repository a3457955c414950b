// When to try a request again, as a pure function: arithmetic only, no clock and no sleep.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/result.h"

namespace playfs::net {

struct RetryPolicy {
  int attempts = 4;  ///< in all; rate limits do not count against it
  std::chrono::milliseconds first_delay{250};
  std::chrono::milliseconds longest_delay{8'000};
  /// The longest that a caller sits out pauses the service asks for, all of one call's together; past that the error
  /// is reported with what was asked.
  std::chrono::seconds longest_obeyed{20};
  /// The longest that a call goes on without an answer, all attempts together.
  std::chrono::seconds longest_call{60};
};

/// What an attempt came to, after the response was classified.
struct Attempt {
  int number = 1;  ///< counted from 1, without the attempts that met a rate limit
  Error error;
  bool repeatable = true;              ///< whether doing it twice does no harm
  std::chrono::nanoseconds paused{0};  ///< what this call has sat out for rate limits so far
  std::chrono::nanoseconds tried{0};   ///< how long it has gone on otherwise
};

/// How long to wait before the next attempt, or nullopt to give up and report the error. `random` is uniform in
/// [0, 2^64) and spreads clients that failed together. Retried: unreachable, timed_out, 5xx, and rate_limited after
/// what the service asked for (never sooner).
std::optional<std::chrono::nanoseconds> retry_delay(const RetryPolicy& policy, const Attempt& attempt,
                                                    std::uint64_t random);

}  // namespace playfs::net
