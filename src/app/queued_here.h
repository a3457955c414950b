// Which of the commits that wait in a clone this user queued there: a record in the user's own state directory.
//
// A clone keeps its queue of publications in its own directory, and anybody can hand one out, in an archive or a
// repository: the next command in it would publish, as this user, what a stranger queued. So a commit is noted here
// before it is queued, by its random id and the directory that it is queued in, and only a commit that is noted goes
// on. A renamed clone is the same directory; a copy is not, nor is what was unpacked, whatever ids are in it. Nothing
// is noted by reading. Blocking; thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "publish/outcome.h"
#include "runtime/places.h"

namespace playfs::app {

class QueuedHere {
 public:
  /// `root`: the clone's directory.
  QueuedHere(const runtime::Places& places, std::string root)
      : state_(places.state), notes_(places.state + "/queued"), root_(std::move(root)) {}

  /// Call this before the commit is queued. Synced when it returns.
  [[nodiscard]] Status note(const std::string& tx) const;
  /// The commit has ended.
  void forget(const std::string& tx) const;
  /// Refuses what waits unless all of it is noted. Says what it is, how to take it over and how to drop it.
  [[nodiscard]] Status check(const std::vector<publish::QueuedCommit>& waiting) const;

 private:
  [[nodiscard]] std::string path_of(const std::string& tx) const;
  [[nodiscard]] Result<bool> is_noted(const std::string& tx) const;

  std::string state_, notes_, root_;
};

}  // namespace playfs::app
