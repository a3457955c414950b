// The calls of a client that have no answer yet, for those who wait for one. Thread-safe; its lock is a leaf.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"

namespace playfs::remote {

class CallsUnderWay : public std::enable_shared_from_this<CallsUnderWay> {
 public:
  struct Entry {
    std::string what;  ///< "GET /.site/data/threads"
    SteadyTime since;
    std::chrono::nanoseconds longest{0};  ///< after which it fails
  };

  /// The call ends when the last copy of the result is gone.
  [[nodiscard]] std::shared_ptr<void> begin(Entry entry) PLAYFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const std::uint64_t number = next_++;
    calls_.emplace(number, std::move(entry));
    return {nullptr, [self = shared_from_this(), number](std::nullptr_t) { self->end(number); }};
  }

  /// The one that has waited longest.
  [[nodiscard]] std::optional<Entry> oldest() const PLAYFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return calls_.empty() ? std::nullopt : std::optional(calls_.begin()->second);
  }

 private:
  void end(std::uint64_t number) PLAYFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    calls_.erase(number);
  }

  mutable Mutex mutex_;
  std::uint64_t next_ PLAYFS_GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, Entry> calls_ PLAYFS_GUARDED_BY(mutex_);  // in the order of their beginnings
};

}  // namespace playfs::remote
