// Bringing what others published into a work tree with changes of its own: an update to head, or taking in a branch.
//
// The three-way merge is worked out first; then what is in conflict is recorded, the merged files are written as an
// editor would replace them, and the base is moved last. A crash in between leaves the old base under files that hold
// more than they did, and doing it again comes to the same. For one thread; waits.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "publish/merging.h"
#include "publish/stage_layers.h"
#include "stage/stage.h"

namespace playfs::publish {

struct Integrated {
  RevisionId base;
  std::size_t conflicts = 0;  ///< paths that were left in conflict
};

/// What was left in conflict and is not resolved yet: its file still has markers, or is still as it was left.
Result<std::vector<stage::Conflicted>> unresolved(stage::Stage& stage);
/// Fails with `busy`, and says where, while something is.
Status check_resolved(stage::Stage& stage);

class Integration {
 public:
  Integration(Upstream& upstream, Merging& merging, stage::Stage& stage, const Settled& settled)
      : upstream_(upstream), merging_(merging), stage_(stage), settled_(settled) {}

  /// `head` becomes the base; where it does not hold the old one, that becomes a further parent of the next commit.
  Result<Integrated> update(const RevisionTreePtr& head);
  /// What `revision` has comes into the tree, and it becomes a further parent of the next commit. Fails with `busy`
  /// where something is staged.
  Result<Integrated> merge(const RevisionTreePtr& revision);
  /// Stage::settle, with what was written since the layer was frozen merged where the new base brings something too.
  Status settle(const std::string& tx, const RevisionTreePtr& base);

 private:
  struct Step {
    Snapshot base, ours, theirs;
    Snapshot below;        ///< what is as it is there follows `next` by itself
    RevisionTreePtr next;  ///< what the tree stands on afterwards
    MergeLabels labels;
  };
  /// Merges and writes what the tree would not have on `step.next`; returns the paths that hold both sides then.
  Result<std::set<std::string>> bring_in(const Step& step);
  Result<std::optional<ContentHash>> hash_of_left(const Step& step, const Merge& merge, const std::string& path);
  [[nodiscard]] std::vector<RevisionId> lines(const RevisionTreePtr& base) const;
  Result<Snapshot> local() const;
  Result<Snapshot> frozen() const;
  Status write(const std::string& path, const Snapshot& near, const MergedFile& file);
  Status put(const std::string& path, const std::string& content, FileMode mode);
  Status remove(const std::string& path);
  void tell(const std::vector<stage::Invalidation>& changed) const {
    if (settled_ && !changed.empty()) settled_(changed);
  }

  Upstream& upstream_;
  Merging& merging_;
  stage::Stage& stage_;
  const Settled& settled_;
};

}  // namespace playfs::publish
