// When to stop asking a service that does not answer: arithmetic only. Not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace playfs::remote {

struct BreakerPolicy {
  /// Attempts without an answer go on for so long before calls are refused. Shorter outages, a restart of the service
  /// say, are sat out by the retries.
  std::chrono::seconds patience{5};
  int attempts = 3;                        ///< and there were so many of them
  std::chrono::seconds probe_interval{2};  ///< then one call in so much time is let through, to see
  int strangers = 8;                       ///< beside so many at once about what did not fail itself
};

/// Whether the service has answered, be it by an error. A status is an answer: one that has trouble with one record
/// serves the others. But 502, 503 and 504 without the service's own error object are a gateway's, which has no answer
/// either; whoever is behind it may be gone.
inline bool is_answer(const Error& error) {
  const bool of_gateway = error.http_status >= 502 && error.http_status <= 504 && error.remote_code.empty();
  return error.http_status != 0 && !of_gateway;
}

/// Closed while the service answers. An outage makes each call wait for its own deadline; once open, calls fail at
/// once, but for a probe now and then, and the first answer to anything closes it.
///
/// What has no answer may be one project alone, whose readers try again and again while nobody asks for anything else.
/// So each call has a subject, and one that has not just failed is not refused for what others met.
class Breaker {
 public:
  explicit Breaker(BreakerPolicy policy) : policy_(policy) {}

  enum class Admission {
    yes,   ///< it may be sent; while the breaker is open it is a probe
    soon,  ///< others are just finding out: it is to ask again in a moment
    no,
  };
  Admission admits(const std::string& subject, SteadyTime now) {
    if (!silent_since_ || failures_ < policy_.attempts || now - *silent_since_ < policy_.patience)
      return Admission::yes;
    auto failed = failed_.find(subject);
    if (failed != failed_.end() && now - failed->second < kJustFailed) {
      if (now < next_probe_) return Admission::no;
      next_probe_ = now + policy_.probe_interval;
      return Admission::yes;
    }
    if (strangers_ >= policy_.strangers && now < stranger_at_ + policy_.probe_interval)
      return now < stranger_at_ + kMoment ? Admission::soon : Admission::no;
    ++strangers_;
    stranger_at_ = now;
    return Admission::yes;
  }
  /// How long nothing has been answered.
  [[nodiscard]] std::chrono::nanoseconds silence(SteadyTime now) const {
    return silent_since_ ? now - *silent_since_ : std::chrono::nanoseconds(0);
  }

  void answered(SteadyTime now) {
    last_answer_ = now;
    hear_everybody();
  }
  /// As if it had answered: everybody is heard until it proves to be silent still.
  void hear_everybody() {
    silent_since_.reset();
    failures_ = 0;
    strangers_ = 0;
    failed_.clear();
  }
  /// An attempt that was begun at `begun` got no answer by `now`.
  void not_answered(const std::string& subject, SteadyTime begun, SteadyTime now) {
    // A service that answers others meanwhile is not silent, however long this one waited.
    const SteadyTime since = std::max(begun, last_answer_);
    silent_since_ = std::min(silent_since_.value_or(since), since);
    ++failures_;
    if (failed_.size() >= kMostSubjects) failed_.clear();
    failed_[subject] = now;
  }

 private:
  static constexpr std::chrono::seconds kJustFailed{10};
  static constexpr std::chrono::milliseconds kMoment{500};  ///< in which a service that is there has answered
  static constexpr std::size_t kMostSubjects = 4096;

  BreakerPolicy policy_;
  std::optional<SteadyTime> silent_since_;
  int failures_ = 0;
  int strangers_ = 0;
  std::map<std::string, SteadyTime> failed_;  ///< since it last answered
  SteadyTime last_answer_{};
  SteadyTime next_probe_{};
  SteadyTime stranger_at_{};
};

}  // namespace playfs::remote
