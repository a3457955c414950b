// Copies of the service's store that answer reads, and are behind now and then: for less time than a publisher takes
// reads to lag (publish::Engine::Parts::late_arrival). What is written goes to the store itself. For one thread.
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

  /// From now on some are behind.
  void lag() { are_lagging_ = true; }
  /// All have caught up, for good.
  void catch_up() { are_lagging_ = false; }
  /// Up to when the copy that answers has what was written; nullopt for all of it.
  std::optional<WallTime> shown_to(const HttpRequest& request);

 private:
  World& world_;
  const MemoryStore& store_;
  bool are_lagging_ = false;
  WallTime stopped_at_;         ///< the copy that is behind has nothing newer
  nanoseconds behind_until_{};  ///< then it has caught up
  double share_ = 0;            ///< of reads that it answers
};

}  // namespace playfs::sim
