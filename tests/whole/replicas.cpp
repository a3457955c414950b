#include "whole/replicas.h"

#include <array>

namespace playfs::sim {

std::optional<WallTime> Replicas::shown_to(const HttpRequest& request) {
  if (!are_lagging_ || request.method != "GET") return std::nullopt;
  auto& random = world_.random;
  if (world_.now() >= behind_until_) {
    if (!random.chance(0.2)) return std::nullopt;
    static constexpr std::array kShares{0.2, 0.5, 1.0};
    stopped_at_ = store_.last_written();
    behind_until_ = world_.now() + std::chrono::seconds(1 + random.below(kLongestLag.count()));
    share_ = kShares[random.below(kShares.size())];
    world_.say("a replica falls behind");
  }
  return random.chance(share_) ? std::optional(stopped_at_) : std::nullopt;
}

}  // namespace playfs::sim
