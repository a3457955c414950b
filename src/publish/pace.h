// How long the rest of an upload takes, judged by how it has gone: how fast the service took chunks, and how many it
// took before it asked to wait. A pure value; for one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace playfs::publish {

class Pace {
 public:
  /// `count` more were stored.
  void has_stored(std::uint32_t count, SteadyTime now);
  /// The service takes nothing more until `goes_on`.
  void is_refused(SteadyTime now, SteadyTime goes_on);
  /// Until `remaining` more are stored; nullopt: there is nothing yet to judge by.
  [[nodiscard]] std::optional<std::chrono::seconds> left(std::uint32_t remaining, SteadyTime now) const;

 private:
  /// What the service allows: so many in so long. Seen, or as its documentation has it where the very first was
  /// refused.
  struct Quota {
    std::uint32_t count = 0;
    std::chrono::nanoseconds period{};
  };

  std::optional<SteadyTime> burst_began_;  ///< when the last rest was over, or the first chunk was sent
  std::uint32_t in_burst_ = 0;
  std::uint32_t stored_ = 0;
  std::chrono::nanoseconds active_{};  ///< what those took, without the rests
  SteadyTime last_;
  SteadyTime goes_on_;
  std::optional<Quota> quota_;
};

}  // namespace playfs::publish
