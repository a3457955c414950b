// Announces a revision that head does not hold: posts a message to the project's own thread. Blocking.
#pragma once

#include <string>
#include <vector>

#include "publish/journal.h"
#include "publish/upstream.h"

namespace playfs::publish {

/// A revision that head does not hold, and the conflicts between the two.
struct Announcement {
  RevisionId revision;
  RevisionId head;                     ///< may be empty
  std::string agent;                   ///< who posts the announcement
  std::string author;                  ///< of the revision
  std::vector<std::string> conflicts;  ///< paths; empty if they were not determined
};

/// The title by which a project's thread is found again.
std::string thread_title(const ProjectId& project);

/// Posts the message at most once: sends nothing if the journal or a message in the thread shows an earlier
/// announcement. The thread is the one that has the project's title (content/names.h); it is created if there is none.
Status announce(Upstream& upstream, Journal& journal, const ProjectId& project, const Announcement& announcement);

}  // namespace playfs::publish
