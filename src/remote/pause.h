// A pause that the service asked for, and when to look whether it still holds: arithmetic only. Not thread-safe.
//
// A pause may be asked for by mistake, or for everybody behind one address, and last a day. So a long one lets a call
// through now and then; its answer ends the pause, or confirms it.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/clock.h"

namespace playfs::remote {

class Pause {
 public:
  /// Asked for by the answer, at `now`, to a call that was sent at `sent_at`.
  void asked(SteadyTime sent_at, SteadyTime now, std::chrono::nanoseconds length) {
    const SteadyTime until = now + length;
    // What was sent before knew nothing of it; what was sent since has the last word.
    until_ = sent_at >= since_ ? until : std::max(until_, until);
    if (opened_at_ && sent_at >= *opened_at_) opened_at_.reset();
    if (probe_at_ < now) probe_at_ = now + interval_;
    since_ = now;
  }
  /// A call that was sent at `sent_at` was answered otherwise. True: the pause is over.
  [[nodiscard]] bool ends(SteadyTime sent_at) const { return sent_at >= since_; }

  /// How long a call has to wait now; not at all where it is the one that looks.
  std::chrono::nanoseconds left(SteadyTime now) {
    if (now >= until_ || (opened_at_ && now < *opened_at_ + kLongestOpen)) return std::chrono::nanoseconds(0);
    if (now < probe_at_) return std::min(until_, probe_at_) - now;
    interval_ = std::min<std::chrono::nanoseconds>(2 * interval_, kLongestInterval);
    probe_at_ = now + interval_;
    return std::chrono::nanoseconds(0);
  }
  /// For an explicit command: lets calls through until one of them is answered with another pause. Letting a single
  /// call through would not do: a background poll could take its place.
  void open(SteadyTime now) { opened_at_ = now; }
  [[nodiscard]] SteadyTime until() const { return until_; }

 private:
  static constexpr std::chrono::minutes kLongestInterval{15};
  static constexpr std::chrono::minutes kLongestOpen{1};  // where nothing is answered

  SteadyTime since_{};
  SteadyTime until_{};
  SteadyTime probe_at_{};
  std::optional<SteadyTime> opened_at_;
  std::chrono::nanoseconds interval_ = std::chrono::minutes(1);
};

}  // namespace playfs::remote
