// Estimates how long the rest of an upload takes: from how fast the service accepted chunks, and how many it accepted
// before it asked to wait. A pure value; for one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace playfs::publish {

class Pace {
 public:
  /// `count` more chunks were stored.
  void has_stored(std::uint32_t count, SteadyTime now);
  /// The service accepts nothing more until `goes_on`, as it says itself: it is asked sooner, which tells nothing.
  void is_refused(SteadyTime now, SteadyTime goes_on);
  /// The time until `remaining` more chunks are stored; nullopt if nothing is known yet.
  [[nodiscard]] std::optional<std::chrono::seconds> left(std::uint32_t remaining, SteadyTime now) const;

 private:
  /// What the service allows: `count` chunks per `period`. Observed, or the documented limit if the very first chunk
  /// was refused.
  struct Quota {
    std::uint32_t count = 0;
    std::chrono::nanoseconds period{};
  };

  std::optional<SteadyTime> burst_began_;  ///< when the last wait was over, or the first chunk was sent
  std::uint32_t in_burst_ = 0;
  std::uint32_t stored_ = 0;
  std::chrono::nanoseconds active_{};  ///< the time that uploading took, without the waits
  SteadyTime last_;
  SteadyTime goes_on_;
  std::optional<Quota> quota_;
};

}  // namespace playfs::publish
