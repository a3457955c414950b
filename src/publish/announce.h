// Telling others of a revision that head does not hold: a message in the project's own thread. Waits.
#pragma once

#include <string>
#include <vector>

#include "publish/journal.h"
#include "publish/upstream.h"

namespace playfs::publish {

/// A revision that stands beside head, and what stands between them.
struct Announcement {
  RevisionId revision;
  RevisionId head;                     ///< may be empty
  std::string agent;                   ///< who says so
  std::string author;                  ///< whose revision it is
  std::vector<std::string> conflicts;  ///< paths; empty where that was not looked at
};

/// The title of a project's thread, by which it is found again.
std::string thread_title(const ProjectId& project);

/// Says it once: nothing is sent where this journal, or a message in the thread, says that it was said before. The
/// thread is the oldest one of kind `collab` with the project's title; it is made where there is none.
Status announce(Upstream& upstream, Journal& journal, const ProjectId& project, const Announcement& announcement);

}  // namespace playfs::publish
