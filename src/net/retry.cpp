#include "net/retry.h"

#include <algorithm>
#include <cmath>

namespace playfs::net {

namespace {

using Nanoseconds = std::chrono::nanoseconds;

/// Narrower than is_transient(): a response that makes no sense will hardly make more the next moment.
bool is_worth_repeating(const Error& error) {
  return traits_of(error.code).reached == Reached::silence || error.code == ErrorCode::rate_limited ||
         error.http_status >= 500;
}

/// Uniform between half of `delay` and all of it.
Nanoseconds spread(Nanoseconds delay, std::uint64_t random) {
  double fraction = std::ldexp(static_cast<double>(random >> 11), -53);
  return delay / 2 + Nanoseconds(static_cast<std::int64_t>(fraction * static_cast<double>((delay / 2).count())));
}

}  // namespace

std::optional<Nanoseconds> retry_delay(const RetryPolicy& policy, const Attempt& attempt, std::uint64_t random) {
  if (!attempt.repeatable || !is_worth_repeating(attempt.error)) return std::nullopt;
  bool limited = attempt.error.code == ErrorCode::rate_limited;
  if (!limited && attempt.number >= policy.attempts) return std::nullopt;

  const Nanoseconds first = policy.first_delay, longest = policy.longest_delay;
  Nanoseconds asked = attempt.error.retry_after.value_or(std::chrono::seconds(0));
  if ((limited || asked > Nanoseconds(0)) && attempt.paused + asked > policy.longest_obeyed) return std::nullopt;
  Nanoseconds delay = first;
  // Rate-limited attempts are not counted; the time already waited replaces the doubling.
  if (limited) delay = std::max(first, attempt.paused);
  for (int i = 1; !limited && i < attempt.number && delay < longest; ++i) delay *= 2;
  delay = spread(std::min(delay, longest), random);
  if (asked > Nanoseconds(0)) delay = std::max(delay, asked + spread(first, random));
  if (!limited && attempt.tried + delay >= policy.longest_call) return std::nullopt;
  return delay;
}

}  // namespace playfs::net
