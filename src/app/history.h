// A project's history, newest revision first, fetched only as far as requested. Blocking; for one thread.
//
// Histories come from strangers: missing parents are skipped, no revision is visited twice, and the number of lookups
// grows with the number of revisions requested, not with the number of parents they name.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "app/revisions.h"
#include "model/records.h"
#include "runtime/client_stack.h"
#include "vfs/published/history.h"

namespace playfs::app {

class RevisionSource {
 public:
  virtual ~RevisionSource() = default;
  /// nullopt if the project has no such revision.
  virtual Result<std::optional<ShownRevision>> find(const RevisionId& id) = 0;
  /// Whether the service said lately, perhaps to another command, that it has no such revision.
  virtual bool was_absent(const RevisionId&) { return false; }
};

/// Reads through a mount. `limit`: how many will be requested, 0: all of them; many are fetched together.
std::unique_ptr<RevisionSource> mounted_revisions(const std::string& project_directory, std::uint64_t limit);
/// Reads from the service. `stack` must outlive it.
std::unique_ptr<RevisionSource> remote_revisions(runtime::ClientStack& stack);

class History {
 public:
  /// `source` must outlive it.
  History(RevisionSource& source, ProjectId project) : source_(source), project_(std::move(project)) {}
  /// Adds a revision and all its ancestors to the history.
  Status add(const RevisionId& id);
  /// The newest revision not returned yet; nullopt at the end.
  Result<std::optional<ShownRevision>> next();
  /// Whether the revision was found in the history so far.
  [[nodiscard]] bool has(const RevisionId& id) const { return found_.contains(id); }
  /// Whether any parents were not looked up.
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
