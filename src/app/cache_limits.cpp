#include "app/cache_limits.h"

namespace playfs::app {

namespace {
constexpr std::uint64_t kDefaultSize = std::uint64_t{2} << 30;
}

CacheLimits cache_limits(const Settings& settings, std::string_view site) {
  CacheLimits limits;
  limits.total = settings.size("cache_size", site).value_or(kDefaultSize);
  // A chunk is kept as the record it came in, and as a part of its file; small files stand in revisions alone.
  limits.records = limits.total / 3;
  limits.objects = limits.total - limits.records;
  return limits;
}

}  // namespace playfs::app
