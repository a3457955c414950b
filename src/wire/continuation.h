// Where a manifest goes on when its record has no room for all files: a file named kContinuationPath at the root, with
// text of one JSON value a line:
//
//   {"playfs-manifest": 1, "note": "…"}
//   {"path": {entry as in a manifest}}
//   …
//
// One file a line, by path, so that a change of one file changes one line, and merging line by line gives a text that
// can be read. A path that stands in the manifest itself as well means that one: a client that knows nothing of this
// may put files there. A file of this name with any other text is a plain file. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/continuation.h"

namespace playfs::wire {

inline constexpr int kContinuationVersion = 1;

std::string continuation_text(const std::map<std::string, FileEntry, std::less<>>& files);

/// Adds what stands in the text to the manifest's files. Fails with `refused_input` where it is no continuation, and
/// leaves the manifest as it was; entries that cannot be shown are refused one by one. REQUIRES:
/// manifest.continuation, not read yet.
Status read_continuation(Manifest& manifest, std::string_view text);

}  // namespace playfs::wire
