// Whether this server is ready for requests: the readiness check of `/healthz`. Thread-safe.
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
  /// How long the result of a store check is reused: anybody may send checks, and each costs a write.
  static constexpr std::chrono::seconds kFresh{1};
  /// A store that takes longer for a write is not ready.
  static constexpr std::chrono::seconds kPatience{3};

  /// Starting. The clock must outlive it.
  explicit Health(const Clock& clock) : clock_(clock) {}

  /// From now on the server is ready while `try_to_write` succeeds, which may block.
  void open(std::function<Status()> try_to_write);
  /// From now on the server is not ready: proxies should send requests to other servers.
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
