// Detects when the service becomes unreachable and when it recovers, and logs each once. Thread-safe.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "content/event_log.h"

namespace playfs::content {

class OutageWatch {
 public:
  OutageWatch(std::string site, const Clock& clock, EventLog& events)
      : site_(std::move(site)), clock_(clock), events_(events) {}

  /// Call after each request with its error; nullptr: it was answered. Returns whether this ended an outage.
  bool saw(const Error* error);

 private:
  const std::string site_;
  const Clock& clock_;
  EventLog& events_;
  Mutex mutex_;
  std::optional<SteadyTime> away_since_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::content
