// Checksums against a disk that gives back other bytes than it was given. Never an identity: whoever chooses the
// bytes can make two that collide. Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace playfs::cache {

/// XXH3 with 128 bits, in its canonical (big-endian) form.
using BlockChecksum = std::array<unsigned char, 16>;
BlockChecksum checksum_of(std::string_view bytes);

/// XXH3 with 64 bits over several fields; ("ab", "c") and ("a", "bc") differ.
std::int64_t checksum_of_row(std::initializer_list<std::string_view> fields);

}  // namespace playfs::cache
