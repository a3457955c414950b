// A manifest too large for its record continues in a file named kContinuationPath at the root. Its text has one JSON
// value per line:
//
//   {"playfs-manifest": 1, "note": "…"}
//   {"path": {entry as in a manifest}}
//   …
//
// One file per line, sorted by path: changing a file changes one line, and merging by lines yields valid text. If a
// path is also in the manifest itself, the manifest wins, because a client unaware of this format may have added it. A
// file of this name with any other text is a plain file. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/continuation.h"

namespace playfs::wire {

inline constexpr int kContinuationVersion = 1;

std::string continuation_text(const std::map<std::string, FileEntry, std::less<>>& files);

/// Adds the files listed in the text to the manifest. Fails with `refused_input` if it is not a continuation, leaving
/// the manifest unchanged; entries that cannot be shown are refused individually. REQUIRES: manifest.continuation, not
/// read yet.
Status read_continuation(Manifest& manifest, std::string_view text);

}  // namespace playfs::wire
