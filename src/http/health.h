// Whether this server lives, and whether it should be sent requests. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"

namespace playfs::http {

class Health {
 public:
  /// The answer to a check of the store is good for so long: checks may come from anybody, and each costs a write.
  static constexpr std::chrono::seconds kFresh{1};
  /// A store that takes longer for a write is not ready.
  static constexpr std::chrono::seconds kPatience{3};

  /// Starting. The clock must outlive it.
  explicit Health(const Clock& clock) : clock_(clock) {}

  /// From now on the server is ready while `try_to_write` succeeds, which may block.
  void open(std::function<Status()> try_to_write);
  /// From now on it is not ready: whoever sends requests should send them to others.
  void drain() { is_draining_ = true; }

  [[nodiscard]] bool is_starting() const { return !is_open_.load(std::memory_order_acquire); }

  /// Why the server is not ready; empty: it is. Of several callers at most one waits for the store.
  std::string_view why_not_ready();

 private:
  const Clock& clock_;
  std::function<Status()> try_to_write_;  // set before is_open_
  std::atomic<bool> is_open_ = false;
  std::atomic<bool> is_draining_ = false;

  Mutex mutex_;
  std::optional<SteadyTime> tried_ PLAYFS_GUARDED_BY(mutex_);  ///< when the last answer came
  bool could_write_ PLAYFS_GUARDED_BY(mutex_) = false;
  bool is_trying_ PLAYFS_GUARDED_BY(mutex_) = false;
};

}  // namespace playfs::http
