// How much of a content is in another, as git judges it for renames. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace playfs::compare {

/// The number of bytes per line or piece, keyed and sorted by hash.
using Fingerprint = std::vector<std::pair<std::size_t, std::uint64_t>>;
Fingerprint fingerprint_of(std::string_view content);

/// The share of the larger of two different contents, of `size` bytes, that is also in the other, in percent: by lines,
/// long ones in pieces, at any position. Never 100.
unsigned similarity(const Fingerprint& a, const Fingerprint& b, std::uint64_t size);

}  // namespace playfs::compare
