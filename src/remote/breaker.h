// Circuit breaker: decides when to stop calling a service that does not respond. Pure arithmetic. Not thread-safe.
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
  /// How long attempts may fail without a response before calls are refused. Retries cover shorter outages, such as a
  /// restart.
  std::chrono::seconds patience{5};
  int attempts = 3;                        ///< the least number of such attempts
  std::chrono::seconds probe_interval{2};  ///< then one call per interval is let through as a probe
  int strangers = 8;                       ///< plus this many calls on subjects that did not fail themselves
};

/// Whether the service responded, be it with an error. An HTTP status counts, since a service that fails on one record
/// serves others. But 502, 503 and 504 without the service's own error object come from a gateway, and the service
/// behind it may be down.
inline bool is_answer(const Error& error) {
  const bool of_gateway = error.http_status >= 502 && error.http_status <= 504 && error.remote_code.empty();
  return error.http_status != 0 && !of_gateway;
}

/// Closed while the service responds. In an outage each call would wait for its own deadline, so once open, calls fail
/// immediately except for occasional probes. Any response closes it.
///
/// The silence may concern a single project whose readers keep retrying while nothing else is requested. So each call
/// has a subject, and one whose subject has not just failed is not refused because of others.
class Breaker {
 public:
  explicit Breaker(BreakerPolicy policy) : policy_(policy) {}

  enum class Admission {
    yes,   ///< may be sent; while the breaker is open, as a probe
    soon,  ///< others are finding out: ask again in a moment
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
  /// Resets the breaker as if the service had responded: calls pass until it proves to be silent still.
  void hear_everybody() {
    silent_since_.reset();
    failures_ = 0;
    strangers_ = 0;
    failed_.clear();
  }
  /// An attempt begun at `begun` got no response by `now`.
  void not_answered(const std::string& subject, SteadyTime begun, SteadyTime now) {
    // A service that answered others meanwhile is not silent, however long this attempt waited.
    const SteadyTime since = std::max(begun, last_answer_);
    silent_since_ = std::min(silent_since_.value_or(since), since);
    ++failures_;
    if (failed_.size() >= kMostSubjects) failed_.clear();
    failed_[subject] = now;
  }

 private:
  static constexpr std::chrono::seconds kJustFailed{10};
  static constexpr std::chrono::milliseconds kMoment{500};  ///< a responsive service answers within this
  static constexpr std::size_t kMostSubjects = 4096;

  BreakerPolicy policy_;
  std::optional<SteadyTime> silent_since_;
  int failures_ = 0;
  int strangers_ = 0;
  std::map<std::string, SteadyTime> failed_;  ///< since the last response
  SteadyTime last_answer_{};
  SteadyTime next_probe_{};
  SteadyTime stranger_at_{};
};

}  // namespace playfs::remote
