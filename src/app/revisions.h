// Revisions as commands print them.
#pragma once

#include <string>
#include <vector>

#include "app/output.h"
#include "model/records.h"

namespace playfs::app {

/// {"revision", "project", "parents", "agent", "message", "created_at"}
JsonObject revision_document(const Revision& revision);
/// As `git log` shows a commit: a headline, the author, the date, the message indented, a blank line.
void print_revision(Output& out, const Revision& revision);

struct PathChange {
  std::string path;
  std::string_view kind;  ///< "added", "modified", "deleted"
};
/// In the order of paths; `before` may be nullptr. Judged by what the manifests say, without fetching contents.
std::vector<PathChange> compare(const Manifest* before, const Manifest& after);

}  // namespace playfs::app
