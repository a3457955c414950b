// What a manifest's `s` may count. A pure function.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/manifest.h"

namespace playfs {

/// Whether `claim` is the size of `content`: in bytes or, for text, as other clients may have counted it, in code
/// points or UTF-16 units.
bool is_size_of(std::uint64_t claim, std::string_view content, ContentEncoding encoding);

}  // namespace playfs
