// The files of the request journal: what they contain, and the checksum by which a change of the disk is noticed before
// it is published or sent under another key. Stateless.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfs/control/request_journal.h"

namespace playfs::vfs {

inline constexpr std::size_t kLongestEntry = 1 << 20;
inline constexpr std::string_view kRequestSuffix = ".json", kDraftSuffix = ".draft", kLockSuffix = ".lock";
/// The part of a file's name that says whose it is: up to the first dot.
std::string owner_of(const std::string& name);

std::string entry_text(const JournalledRequest& request);
/// nullopt if it is damaged. `name` is not set.
std::optional<JournalledRequest> parsed_entry(std::string_view text);

struct DraftEntry {
  std::string path;        ///< of the control file
  std::string text;        ///< as written so far
  std::string agent = {};  ///< the default agent of the mount that it was written to; empty: an earlier version's
};
std::string draft_text(const DraftEntry& draft);
std::optional<DraftEntry> parsed_draft(std::string_view text);

/// The regular files in it. Paths, sorted.
std::vector<std::string> files_in(const std::string& directory);
/// What waits in a journal for its user. Paths, sorted.
struct JournalHealth {
  std::vector<std::string> unsent;
  std::vector<std::string> damaged;  ///< files that are no entries; the next mount moves them to the unsent ones
};
/// Looks at the journal in `directory`, whoever has it open, and changes nothing.
JournalHealth examine_journal(const std::string& directory);

}  // namespace playfs::vfs
