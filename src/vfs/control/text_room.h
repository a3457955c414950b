// The bound of what waits for its writer in a journal's directory: texts that were saved, and drafts, which may have to
// be saved. Those in the journal come on top. Stateless; does local I/O, so call it on a disk thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace playfs::vfs {

/// A text for which there was no room: it was admitted since it is saved already, and is being sent again.
struct SavedText {
  std::string path;  ///< where it is saved
  std::string text;
};

/// What they may take together.
inline constexpr std::size_t kMostTexts = 1'000;
inline constexpr std::uint64_t kMostTextBytes = 16 << 20;

/// Where a journal in `directory` saves texts.
std::string unsent_directory_of(const std::string& directory);
/// The saved texts, which wait for their writer. Paths, sorted.
std::vector<std::string> unsent_texts(const std::string& unsent);
/// Whether that file has exactly this text.
bool is_saved_as(const std::string& path, std::string_view text);

/// Fails unless there is room for `bytes` more, not counting the file `own`, whose content they replace.
Status check_room(const std::string& directory, std::uint64_t bytes, const std::string& own);

}  // namespace playfs::vfs
