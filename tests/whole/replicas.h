// Copies of the service's store that answer reads, and lag at times, by less than a publisher allows reads to lag
// (publish::PublicationEngine::Parts::late_arrival). Writes go to the store itself. For one thread.
#pragma once

#include <optional>

#include "net/transport.h"
#include "whole/memory_store.h"
#include "whole/world.h"

namespace playfs::sim {

class Replicas {
 public:
  static constexpr std::chrono::seconds kLongestLag{110};
  Replicas(World& world, const MemoryStore& store) : world_(world), store_(store) {}

  /// From now on some of them lag.
  void lag() { are_lagging_ = true; }
  /// All have caught up, for good.
  void catch_up() { are_lagging_ = false; }
  /// The time up to which the answering copy is complete; nullopt: it is up to date.
  std::optional<WallTime> shown_to(const HttpRequest& request);

 private:
  World& world_;
  const MemoryStore& store_;
  bool are_lagging_ = false;
  WallTime stopped_at_;         ///< the lagging copy has nothing newer
  nanoseconds behind_until_{};  ///< when it has caught up
  double share_ = 0;            ///< of the reads, answered by it
};

}  // namespace playfs::sim
