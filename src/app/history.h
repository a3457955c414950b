// A project's history, revision by revision, the newest first, only as far as it is asked for. Blocking; for one
// thread.
//
// Histories come from strangers: a parent that is not there is left out, none is visited twice, and how many are looked
// for grows with how many revisions are asked for, not with how many parents these name.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "app/revisions.h"
#include "app/world.h"
#include "model/records.h"
#include "vfs/history.h"

namespace playfs::app {

class RevisionSource {
 public:
  virtual ~RevisionSource() = default;
  /// nullopt where there is no such revision in the project.
  virtual Result<std::optional<ShownRevision>> find(const RevisionId& id) = 0;
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
  Result<std::optional<ShownRevision>> next();
  /// Whether there is such a revision in it, so far.
  [[nodiscard]] bool has(const RevisionId& id) const { return found_.contains(id); }
  /// Whether there were parents that were not looked for.
  [[nodiscard]] bool left_parents_out() const { return left_out_; }

 private:
  struct Older {
    bool operator()(const ShownRevision& a, const ShownRevision& b) const;
  };
  RevisionSource& source_;
  const ProjectId project_;
  std::priority_queue<ShownRevision, std::vector<ShownRevision>, Older> next_;
  std::set<RevisionId> seen_, found_;
  vfs::ParentBudget budget_;
  bool left_out_ = false;
};

}  // namespace playfs::app
