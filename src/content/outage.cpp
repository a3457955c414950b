#include "content/outage.h"

namespace playfs::content {

bool OutageWatch::saw(const Error* error) {
  const Reached reached = error ? traits_of(error->code).reached : Reached::decision;
  if (reached == Reached::nobody || reached == Reached::given_up)
    return false;  // neither says anything about the service
  const bool away = reached == Reached::silence;

  std::optional<SteadyTime> ended;
  {
    MutexLock lock(mutex_);
    if (away == away_since_.has_value()) return false;
    if (away) away_since_ = clock_.steady();
    else ended = std::exchange(away_since_, std::nullopt);
  }
  if (!ended) {
    events_.error(site_, *error);
    return false;
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(clock_.steady() - *ended).count();
  events_.event("recovered", {{"site", site_}, {"after_s", static_cast<std::int64_t>(seconds)}});
  return true;
}

}  // namespace playfs::content
