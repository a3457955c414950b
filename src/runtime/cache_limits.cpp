#include "runtime/cache_limits.h"

namespace playfs::runtime {

namespace {
constexpr std::uint64_t kDefaultSize = std::uint64_t{2} << 30;
}

CacheLimits cache_limits(const Settings& settings, std::string_view site) {
  CacheLimits limits;
  limits.total = settings.size("cache_size", site).value_or(kDefaultSize);
  // A chunk is cached twice, as a record and within its file's object; small files exist only inside revision records.
  limits.records = limits.total / 3;
  limits.objects = limits.total - limits.records;
  return limits;
}

}  // namespace playfs::runtime
