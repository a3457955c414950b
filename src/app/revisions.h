// Prints revisions for commands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/output.h"
#include "model/records.h"

namespace playfs::app {

/// A revision as histories show it.
struct ShownRevision {
  Revision revision;               ///< with only its first parents
  std::uint64_t more_parents = 0;  ///< how many were left out
};
ShownRevision as_shown(Revision revision);

/// {"revision", "project", "parents", "agent", "message", "created_at"}, and "more_parents" if some were left out.
JsonObject revision_document(const ShownRevision& shown);
/// The lines that `git log` shows for a commit: a headline with the labels ("head", "base" …), the author, the date,
/// the indented message, a blank line.
std::vector<std::string> revision_lines(const Output& out, const ShownRevision& shown,
                                        const std::vector<std::string>& labels = {});
/// One line: the id, the labels, the message's first line, the author.
std::string revision_line(const Output& out, const Revision& revision, const std::vector<std::string>& labels);

}  // namespace playfs::app
