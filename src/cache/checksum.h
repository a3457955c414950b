// Checksums that detect disk corruption. Never an identity: anyone who chooses the bytes can make two that collide.
// Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace playfs::cache {

/// 128-bit XXH3 in its canonical (big-endian) form.
using BlockChecksum = std::array<unsigned char, 16>;
BlockChecksum checksum_of(std::string_view bytes);

/// 64-bit XXH3 over several fields; ("ab", "c") and ("a", "bc") differ.
std::int64_t checksum_of_row(std::initializer_list<std::string_view> fields);

}  // namespace playfs::cache
