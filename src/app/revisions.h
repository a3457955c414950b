// Revisions as commands print them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/output.h"
#include "model/records.h"

namespace playfs::app {

/// A revision as histories show it.
struct ShownRevision {
  Revision revision;               ///< with the first of its parents
  std::uint64_t more_parents = 0;  ///< that it has besides
};
ShownRevision as_shown(Revision revision);

/// {"revision", "project", "parents", "agent", "message", "created_at"}, and "more_parents" where there are more.
JsonObject revision_document(const ShownRevision& shown);
/// As `git log` shows a commit, line by line: a headline with what is found there ("head", "base" …), the author, the
/// date, the message indented, a blank line.
std::vector<std::string> revision_lines(const Output& out, const ShownRevision& shown,
                                        const std::vector<std::string>& labels = {});
/// On one line: the id, what is found there, the message's first line, the author.
std::string revision_line(const Output& out, const Revision& revision, const std::vector<std::string>& labels);

struct PathChange {
  std::string path;
  std::string_view kind;  ///< "added", "modified", "deleted"
};
/// In the order of paths; `before` may be nullptr. Judged by what the manifests say, without fetching contents.
std::vector<PathChange> compare(const Manifest* before, const Manifest& after);

}  // namespace playfs::app
