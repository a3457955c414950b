#include "publish/upload_pace.h"

#include <algorithm>

namespace playfs::publish {

namespace {

/// The service's documented limit for chunks.
constexpr std::uint32_t kDocumentedCount = 240;
constexpr std::chrono::hours kDocumentedPeriod{1};

}  // namespace

void Pace::has_stored(std::uint32_t count, SteadyTime now) {
  if (!burst_began_) {
    burst_began_ = last_ = now;
    if (count == 0) return;  // the upload begins
  }
  active_ += now - std::max(last_, std::min(goes_on_, now));
  last_ = now;
  in_burst_ += count;
  stored_ += count;
}

void Pace::is_refused(SteadyTime now, SteadyTime goes_on) {
  if (in_burst_ > 0 && goes_on > *burst_began_) quota_ = Quota{in_burst_, goes_on - *burst_began_};
  else if (!quota_) quota_ = Quota{kDocumentedCount, kDocumentedPeriod};
  last_ = now;
  goes_on_ = goes_on;
  burst_began_ = goes_on;
  in_burst_ = 0;
}

std::optional<std::chrono::seconds> Pace::left(std::uint32_t remaining, SteadyTime now) const {
  if (stored_ == 0 && !quota_) return std::nullopt;
  auto each = stored_ > 0 ? active_ / stored_ : std::chrono::nanoseconds(0);
  std::chrono::nanoseconds whole{};
  if (goes_on_ > now) whole += goes_on_ - now;
  if (quota_ && remaining > 0) {
    // This burst takes what is left of the quota. Then come whole periods, except that the last one ends when all is
    // sent.
    std::uint32_t first = quota_->count - std::min(in_burst_, quota_->count);
    std::uint32_t later = remaining - std::min(first, remaining);
    std::uint32_t bursts = (later + quota_->count - 1) / quota_->count;
    if (bursts > 0) {
      auto over = std::chrono::nanoseconds(0);  // elapsed time of the current period
      if (now > goes_on_ && burst_began_) over = now - *burst_began_;
      whole += bursts * quota_->period - std::min(over, quota_->period);
      remaining = later - (bursts - 1) * quota_->count;
    }
  }
  whole += remaining * each;
  return std::chrono::ceil<std::chrono::seconds>(whole);
}

}  // namespace playfs::publish
