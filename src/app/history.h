// A project's history, revision by revision, the newest first, only as far as it is asked for. Blocking; for one
// thread.
//
// Histories come from strangers: a parent that is not there is left out, and none is visited twice.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "app/world.h"
#include "model/records.h"

namespace playfs::app {

class RevisionSource {
 public:
  virtual ~RevisionSource() = default;
  /// nullopt where there is no such revision in the project.
  virtual Result<std::optional<Revision>> find(const RevisionId& id) = 0;
};

/// Through a mount. `limit`: how many will be asked for, 0: all of them; many are fetched together.
std::unique_ptr<RevisionSource> mounted_revisions(const std::string& project_directory, std::uint64_t limit);
/// Of the service. `world` must outlive it.
std::unique_ptr<RevisionSource> remote_revisions(World& world);

class History {
 public:
  /// `source` must outlive it.
  History(RevisionSource& source, ProjectId project) : source_(source), project_(std::move(project)) {}
  /// It and all that it was made from belong to the history.
  Status add(const RevisionId& id);
  /// The newest that was not given yet; nullopt: that was all.
  Result<std::optional<Revision>> next();

 private:
  struct Older {
    bool operator()(const Revision& a, const Revision& b) const;
  };
  RevisionSource& source_;
  const ProjectId project_;
  std::priority_queue<Revision, std::vector<Revision>, Older> next_;
  std::set<RevisionId> seen_;
};

}  // namespace playfs::app
