// Gives memory back to the system once much of it was let go of. Thread-safe.
//
// What a storm of small pieces leaves (a hundred thousand files that were made and removed) the allocator keeps: all
// around what lives on are holes that only malloc_trim(3) finds. That holds up who allocates meanwhile, so it waits for
// quiet. Nothing wakes a mount that does nothing.
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

  /// `later` runs no task any more once this ends. `give_back`: malloc_trim(3), but for tests.
  explicit SpareMemory(Later later, std::function<void()> give_back);

  /// A node was let go of, with all that hangs on it.
  void let_go();

 private:
  /// Gives back, unless as many again were let go of since there were `seen`.
  void look(std::uint64_t seen);

  const Later later_;
  const std::function<void()> give_back_;
  std::atomic<std::uint64_t> let_go_ = 0;  ///< since memory was given back
};

}  // namespace playfs::vfs
