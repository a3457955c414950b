// Saves the text of a request that will not be sent, for its writer to send again. Stateless; does local I/O, so call
// it on a disk thread.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "vfs/control/journal_entry.h"
#include "vfs/control/request_journal.h"

namespace playfs::vfs {

/// Whether `why` is a refusal by this mount, before an attempt: no service's answer has these codes.
bool is_refused_here(const Error& why);

struct Unsent {
  Error why;             ///< and how to send the text again
  bool is_kept = false;  ///< in a file; else `why` has the text
};

/// Writes the text, as JSON that its control file accepts, to a file of its own among the unsent texts of the journal
/// in `directory`, 0600 and synced. Called again for the same request, it replaces the file. `saved`: by which it was
/// admitted; while that is there, nothing is written.
Unsent keep_unsent(const std::string& directory, const JournalledRequest& request,
                   const std::optional<SavedText>& saved, Error why);

/// The same of a text that no request was made of, for `why`, as it was written. The file is `name`.by-AGENT.txt, since
/// whoever writes it to a mount sends it as that mount's agent: the hint for `reader` leads to its own agent's.
Unsent keep_unsent_text(const std::string& directory, const std::string& name, const DraftEntry& draft,
                        const JournalUser& reader, const std::optional<SavedText>& saved, Error why);

}  // namespace playfs::vfs
