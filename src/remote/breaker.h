// When to stop asking a service that does not answer: arithmetic only. Not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/clock.h"

namespace playfs::remote {

struct BreakerPolicy {
  /// Attempts without an answer go on for so long before calls are refused. Shorter outages, a restart of the service
  /// say, are sat out by the retries.
  std::chrono::seconds patience{5};
  int attempts = 3;                        ///< and there were so many of them
  std::chrono::seconds probe_interval{2};  ///< then one call in so much time is let through, to see
};

/// Closed while the service answers. An outage makes each call wait for its own deadline; once open, calls fail at
/// once, but for a probe now and then, and the first answer to anything closes it.
class Breaker {
 public:
  explicit Breaker(BreakerPolicy policy) : policy_(policy) {}

  /// Whether a new call may be sent. One that may, while the breaker is open, is the probe.
  bool admits(SteadyTime now) {
    if (!silent_since_ || failures_ < policy_.attempts || now - *silent_since_ < policy_.patience) return true;
    if (now < next_probe_) return false;
    next_probe_ = now + policy_.probe_interval;
    return true;
  }
  /// How long nothing has been answered.
  [[nodiscard]] std::chrono::nanoseconds silence(SteadyTime now) const {
    return silent_since_ ? now - *silent_since_ : std::chrono::nanoseconds(0);
  }

  void answered(SteadyTime now) {
    last_answer_ = now;
    silent_since_.reset();
    failures_ = 0;
  }
  /// An attempt that was begun at `begun` got no answer.
  void not_answered(SteadyTime begun) {
    // A service that answers others meanwhile is not silent, however long this one waited.
    const SteadyTime since = std::max(begun, last_answer_);
    silent_since_ = std::min(silent_since_.value_or(since), since);
    ++failures_;
  }

 private:
  BreakerPolicy policy_;
  std::optional<SteadyTime> silent_since_;
  int failures_ = 0;
  SteadyTime last_answer_{};
  SteadyTime next_probe_{};
};

}  // namespace playfs::remote
