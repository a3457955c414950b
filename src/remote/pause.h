// A rate-limit pause, and when to probe whether it still holds. Pure arithmetic. Not thread-safe.
//
// A pause may be a mistake, or meant for everyone behind one address, and last a day. So a long one occasionally lets a
// call through, whose response ends or confirms it.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/clock.h"

namespace playfs::remote {

class Pause {
 public:
  /// Starts or extends the pause: the response at `now`, to a call sent at `sent_at`, requested it.
  void asked(SteadyTime sent_at, SteadyTime now, std::chrono::nanoseconds length) {
    const SteadyTime until = now + length;
    // A call sent earlier did not know of the pause; one sent since has the last word.
    until_ = sent_at >= since_ ? until : std::max(until_, until);
    if (opened_at_ && sent_at >= *opened_at_) opened_at_.reset();
    if (probe_at_ < now) probe_at_ = now + interval_;
    since_ = now;
  }
  /// Whether any other response to a call sent at `sent_at` ends the pause.
  [[nodiscard]] bool ends(SteadyTime sent_at) const { return sent_at >= since_; }

  /// How long a call must wait now; 0 if it may go, possibly as the probe.
  std::chrono::nanoseconds left(SteadyTime now) {
    if (now >= until_ || (opened_at_ && now < *opened_at_ + kLongestOpen)) return std::chrono::nanoseconds(0);
    if (now < probe_at_) return std::min(until_, probe_at_) - now;
    interval_ = std::min<std::chrono::nanoseconds>(2 * interval_, kLongestInterval);
    probe_at_ = now + interval_;
    return std::chrono::nanoseconds(0);
  }
  /// For an explicit command: lets calls through until one meets another pause. A single call would not do, because a
  /// background poll could take its place.
  void open(SteadyTime now) { opened_at_ = now; }
  [[nodiscard]] SteadyTime until() const { return until_; }

 private:
  static constexpr std::chrono::minutes kLongestInterval{15};
  static constexpr std::chrono::minutes kLongestOpen{1};  // if no response comes

  SteadyTime since_{};
  SteadyTime until_{};
  SteadyTime probe_at_{};
  std::optional<SteadyTime> opened_at_;
  std::chrono::nanoseconds interval_ = std::chrono::minutes(1);
};

}  // namespace playfs::remote
