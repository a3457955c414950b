#include "cache/checksum.h"

#include <bit>
#include <memory>

#include <xxhash.h>

namespace playfs::cache {

BlockChecksum checksum_of(std::string_view bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  BlockChecksum checksum;
  std::copy(std::begin(canonical.digest), std::end(canonical.digest), checksum.begin());
  return checksum;
}

std::int64_t checksum_of_row(std::initializer_list<std::string_view> fields) {
  // Chained instead of streamed: each field's hash seeds the next, so that lengths and order matter.
  XXH64_hash_t hash = 0;
  for (std::string_view field : fields) hash = XXH3_64bits_withSeed(field.data(), field.size(), hash + 1);
  return std::bit_cast<std::int64_t>(hash);
}

}  // namespace playfs::cache
