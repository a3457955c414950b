#include "vfs/spare_memory.h"

#include <utility>

namespace playfs::vfs {

SpareMemory::SpareMemory(Later later, std::function<void()> give_back)
    : later_(std::move(later)), give_back_(std::move(give_back)) {}

void SpareMemory::let_go() {
  // The thread that reaches kMany starts a check; no other starts one until it has ended.
  if (let_go_.fetch_add(1, std::memory_order_relaxed) + 1 == kMany) look(0);
}

void SpareMemory::look(std::uint64_t seen) {
  const std::uint64_t now = let_go_.load(std::memory_order_relaxed);
  if (now - seen >= kMany) return later_(kQuiet, [this, now] { look(now); });
  give_back_();
  if (let_go_.fetch_sub(now, std::memory_order_relaxed) - now >= kMany) look(0);  // nodes released meanwhile
}

}  // namespace playfs::vfs
