#include "remote/observed_limits.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace playfs::remote {

namespace {

using std::chrono::minutes;

constexpr minutes kHour{60};
/// Bounds, since a raw call may name any collection and a service may send any header.
constexpr std::size_t kMostBuckets = 64;
constexpr std::size_t kMostHeaders = 16;
constexpr std::size_t kLongestValue = 200;

minutes minute_of(SteadyTime time) { return std::chrono::floor<minutes>(time.time_since_epoch()); }

std::map<std::string, std::string> announced_by(const HttpResponse& response) {
  std::map<std::string, std::string> announced;
  for (const auto& [name, value] : response.headers) {
    std::string known = to_lower(name);
    bool is_limit =
        known.starts_with("x-ratelimit") || known.starts_with("x-rate-limit") || known.starts_with("ratelimit");
    bool is_plain = std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c < 0x7F; }) &&
                    std::all_of(known.begin(), known.end(), [](char c) { return c > ' ' && c < 0x7F; });
    if (is_limit && is_plain && known.size() + value.size() <= kLongestValue && announced.size() < kMostHeaders)
      announced[std::move(known)] = value;
  }
  return announced;
}

}  // namespace

void ObservedLimits::note(const std::string& bucket, bool is_write, const HttpResponse* response,
                          std::optional<std::chrono::seconds> retry_after, const Clock& clock) {
  if (!buckets_.contains(bucket) && buckets_.size() >= kMostBuckets) return;
  Bucket& here = buckets_[bucket];
  bool is_refused = response && response->status == 429;
  if (is_refused) {
    ++here.seen.refused;
    here.seen.last_refused = clock.wall();
    here.seen.retry_after = retry_after;
  }
  if (response)
    if (auto announced = announced_by(*response); !announced.empty()) here.seen.announced = std::move(announced);
  if (!is_write || is_refused) return;
  minutes now = minute_of(clock.steady());
  while (!here.writes.empty() && here.writes.front().first <= now - kHour) here.writes.pop_front();
  if (here.writes.empty() || here.writes.back().first != now) here.writes.emplace_back(now, 0);
  ++here.writes.back().second;
}

std::map<std::string, ObservedLimit> ObservedLimits::seen(SteadyTime now) const {
  std::map<std::string, ObservedLimit> seen;
  for (const auto& [name, bucket] : buckets_) {
    ObservedLimit& limit = seen[name] = bucket.seen;
    for (const auto& [minute, count] : bucket.writes)
      if (minute > minute_of(now) - kHour) limit.writes_last_hour += count;
  }
  return seen;
}

}  // namespace playfs::remote
