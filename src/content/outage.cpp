#include "content/outage.h"

namespace playfs::content {

bool is_away(const Error& error) {
  switch (error.code) {
    case ErrorCode::unreachable:
    case ErrorCode::timed_out:
    case ErrorCode::rate_limited:
    case ErrorCode::offline:
    case ErrorCode::protocol: return true;  // usually a proxy's error page
    default: return false;
  }
}

void OutageWatch::saw(const Error* error) {
  const bool away = error && (error->code == ErrorCode::unreachable || error->code == ErrorCode::timed_out);
  // Neither says anything about the service: we did not ask, or did not wait.
  if (error && (error->code == ErrorCode::offline || error->code == ErrorCode::interrupted)) return;

  std::optional<SteadyTime> ended;
  {
    MutexLock lock(mutex_);
    if (away == away_since_.has_value()) return;
    if (away) away_since_ = clock_.steady();
    else ended = std::exchange(away_since_, std::nullopt);
  }
  if (!ended) return events_.error(site_, *error);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(clock_.steady() - *ended).count();
  events_.event("recovered", {{"site", site_}, {"after_s", static_cast<std::int64_t>(seconds)}});
}

}  // namespace playfs::content
