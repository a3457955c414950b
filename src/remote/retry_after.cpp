#include "remote/retry_after.h"

#include <algorithm>

#include "net/origin.h"

namespace playfs::remote {

std::optional<std::string> retry_after_of(const HttpResponse& response, const Clock& clock) {
  auto header = response.headers.get("Retry-After");
  if (!header) return std::nullopt;
  auto until = net::parse_http_date(*header);
  if (!until) return std::string(*header);
  auto date = response.headers.get("Date");
  auto now = date ? net::parse_http_date(*date) : std::nullopt;
  return std::to_string(std::max<std::int64_t>(0, until->seconds() - now.value_or(clock.wall()).seconds()));
}

}  // namespace playfs::remote
