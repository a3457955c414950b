// Where a manifest goes on when its record has no room for all files: a file of that manifest, with text that is JSON:
//
//   {"version": 1, "files": {
//   "path": {entry as in a manifest},
//   …}}
//
// one entry a line, by path, so that a change of one file changes a few lines of it. `manifest.more` says which file
// it is: {"v": 1, "path": ".playfs-manifest"}. A path that stands in the manifest itself as well means that one: a
// client that knows nothing of this may put files there. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/manifest.h"

namespace playfs::wire {

inline constexpr int kContinuationVersion = 1;
/// The name under which playfs puts it; one with another name is read as well.
inline constexpr const char* kContinuationPath = ".playfs-manifest";

/// The lines of a continuation: its first, one for each file in order, its last. Joined they are the text.
std::string continuation_text(const std::map<std::string, FileEntry, std::less<>>& files);

/// Adds what stands in the text to the manifest's files. Fails with `refused_input` where it cannot be read; entries
/// that cannot be shown are refused one by one. REQUIRES: manifest.continuation, not read yet.
Status read_continuation(Manifest& manifest, std::string_view text);

}  // namespace playfs::wire
