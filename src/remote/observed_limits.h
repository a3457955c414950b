// What a service's answers have said of its limits, beside what it documents. Plain bookkeeping, for one thread at a
// time.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/http.h"

namespace playfs::remote {

/// Of the reads, or of the writes of one collection.
struct ObservedLimit {
  std::uint64_t writes_last_hour = 0;  ///< that were not refused; to the minute
  std::uint64_t refused = 0;           ///< answers with 429, since the beginning
  std::optional<WallTime> last_refused;
  std::optional<std::chrono::seconds> retry_after;  ///< what that one asked for
  std::map<std::string, std::string> announced;  ///< X-RateLimit-… and RateLimit… headers as last sent, lower case
};

class ObservedLimits {
 public:
  /// One request came to its end. `response`: nullptr where none came, so that it is open whether it was counted.
  /// `retry_after`: of a 429, where it says so.
  void note(const std::string& lane, bool is_write, const HttpResponse* response,
            std::optional<std::chrono::seconds> retry_after, const Clock& clock);

  /// By lane: "" for the reads, otherwise a collection.
  [[nodiscard]] std::map<std::string, ObservedLimit> seen(SteadyTime now) const;

 private:
  struct Lane {
    ObservedLimit seen;
    std::deque<std::pair<std::chrono::minutes, std::uint64_t>> writes;  ///< by the minute, of the last hour
  };
  std::map<std::string, Lane> lanes_;
};

}  // namespace playfs::remote
