#include "vfs/own_renames.h"

namespace playfs::vfs {

void OwnRenames::note(const std::string& collection, const std::string& id, const std::string& from,
                      const std::string& to) {
  MutexLock lock(mutex_);
  if (to_.size() >= kMost) to_.clear();
  to_[{collection, id, from}] = to;
}

void OwnRenames::forget(const std::string& collection, const std::string& id, const std::string& from) {
  MutexLock lock(mutex_);
  to_.erase({collection, id, from});
}

bool OwnRenames::lead(const std::string& collection, const std::string& id, const std::string& before,
                      const std::string& now) const {
  MutexLock lock(mutex_);
  std::string name = before;
  for (int step = 0; step < kMostSteps && name != now; ++step) {
    const auto next = to_.find({collection, id, name});
    if (next == to_.end()) return false;
    name = next->second;
  }
  return name == now;
}

}  // namespace playfs::vfs
