// What responses have revealed about a service's limits, beyond its documentation. One thread at a time.
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

/// For reads, or for writes to one collection.
struct ObservedLimit {
  std::uint64_t writes_last_hour = 0;  ///< not counting refused ones; accurate to the minute
  std::uint64_t refused = 0;           ///< 429 responses so far
  std::optional<WallTime> last_refused;
  std::optional<std::chrono::seconds> retry_after;  ///< requested by the last 429
  std::map<std::string, std::string> announced;     ///< latest X-RateLimit-… and RateLimit… headers, lower case
};

class ObservedLimits {
 public:
  /// Records the end of a request. `response`: nullptr if there was none, so that it may or may not have been counted.
  /// `retry_after`: of a 429, if given.
  void note(const std::string& bucket, bool is_write, const HttpResponse* response,
            std::optional<std::chrono::seconds> retry_after, const Clock& clock);

  /// By rate-limit bucket: "" for reads, otherwise a collection.
  [[nodiscard]] std::map<std::string, ObservedLimit> seen(SteadyTime now) const;

 private:
  struct Bucket {
    ObservedLimit seen;
    std::deque<std::pair<std::chrono::minutes, std::uint64_t>> writes;  ///< per minute, of the last hour
  };
  std::map<std::string, Bucket> buckets_;
};

}  // namespace playfs::remote
