// Returns memory to the system after a lot of it was freed. Thread-safe.
//
// After a burst of small allocations (a hundred thousand files created and removed) the allocator keeps the memory:
// what survives leaves holes that only malloc_trim(3) finds. That call blocks other allocations, so it waits for a
// quiet moment. An idle mount is never woken.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>

#include "base/callback.h"

namespace playfs::vfs {

class SpareMemory {
 public:
  using Later = std::function<void(std::chrono::nanoseconds delay, Task task)>;
  /// Some ten megabytes.
  static constexpr std::uint64_t kMany = 10'000;
  static constexpr std::chrono::seconds kQuiet{1};

  /// `later` must run no task after this object is destroyed. `give_back` is malloc_trim(3), except in tests.
  explicit SpareMemory(Later later, std::function<void()> give_back);

  /// Call when a node has been released, with everything it owns.
  void let_go();

 private:
  /// Gives memory back, unless kMany more nodes were released since `seen`.
  void look(std::uint64_t seen);

  const Later later_;
  const std::function<void()> give_back_;
  std::atomic<std::uint64_t> let_go_ = 0;  ///< nodes released since memory was last given back
};

}  // namespace playfs::vfs
