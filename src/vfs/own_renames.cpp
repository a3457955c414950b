#include "vfs/own_renames.h"

namespace playfs::vfs {

void OwnRenames::note(const std::string& collection, const std::string& id, const std::string& from,
                      const std::string& to) {
  MutexLock lock(mutex_);
  if (renames_.size() >= kMost) renames_.clear();
  renames_[{collection, id, from}] = {to, std::chrono::steady_clock::now()};
}

void OwnRenames::forget(const std::string& collection, const std::string& id, const std::string& from) {
  MutexLock lock(mutex_);
  renames_.erase({collection, id, from});
}

bool OwnRenames::lead(const std::string& collection, const std::string& id, const std::string& before,
                      const std::string& now) const {
  MutexLock lock(mutex_);
  std::string name = before;
  for (int step = 0; step < kMostSteps && name != now; ++step) {
    const auto next = renames_.find({collection, id, name});
    if (next == renames_.end() || std::chrono::steady_clock::now() > next->second.noted + kLately) return false;
    name = next->second.to;
  }
  return name == now;
}

}  // namespace playfs::vfs
