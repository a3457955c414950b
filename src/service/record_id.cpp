#include "service/record_id.h"

#include <cstdint>
#include <string_view>

namespace playfs::service {

namespace {
// Crockford's base 32 in lower case: digits sort before letters, and no two characters look alike.
constexpr std::string_view kDigits = "0123456789abcdefghjkmnpqrstvwxyz";
constexpr std::size_t kTimeDigits = 9;  // 45 bits of milliseconds: until the year 3084

void put(std::string& id, std::size_t at, std::size_t digits, std::uint64_t value) {
  for (std::size_t i = digits; i-- > 0; value >>= 5) id[at + i] = kDigits[value & 31];
}
}  // namespace

std::string make_record_id(WallTime created_at, Random& random) {
  std::string id(kRecordIdLength, '0');
  put(id, 0, kTimeDigits, static_cast<std::uint64_t>(created_at.nanoseconds / 1'000'000));
  put(id, kTimeDigits, kRecordIdLength - kTimeDigits, random.next());
  return id;
}

}  // namespace playfs::service
