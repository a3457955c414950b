// Merging revisions: finds what they have in common in the graph of parents, and puts versions together in memory.
//
// The outcome depends on the revisions alone, so that any client comes to the same. For one thread; waits.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "model/bytes.h"
#include "model/lineage.h"
#include "model/merge.h"
#include "publish/upstream.h"

namespace playfs::publish {

/// A version of the project: a revision's, or one that was merged and not published. In the latter, text that was
/// merged stands inline, whatever its size.
struct Snapshot {
  RevisionTreePtr near;  ///< the revision, or one of those it was merged of; nullptr for an empty version
  Manifest manifest;
  Json state;
  /// Bytes of files that are nowhere but here: their entries have a hash and neither text nor chunks.
  std::map<std::string, Bytes, std::less<>> own = {};
};
Snapshot snapshot_of(const RevisionTreePtr& revision);

/// What a clean merge leaves, as a version. At conflicts it has what Merge::files has.
Snapshot snapshot_of(const Merge& merge, const Snapshot& ours);

/// The merge itself; replaced where a test plants a fault.
using MergeVersions = std::function<Result<Merge>(const Version& base, const Version& ours, const Version& theirs,
                                                  const ReadEntry& read, const MergeLabels& labels)>;

class Merging {
 public:
  explicit Merging(Upstream& upstream, MergeVersions merge = merge_versions)
      : upstream_(upstream), merge_(std::move(merge)) {}

  /// What is known of revisions without asking for them again, from a listing.
  void learn(const Link& link) { links_.insert_or_assign(link.id, link); }
  [[nodiscard]] const FindLink& links() const { return find_; }

  Result<Merge> merge(const Snapshot& base, const Snapshot& ours, const Snapshot& theirs,
                      const MergeLabels& labels = {});
  /// The same with another reader.
  Result<Merge> merge(const Snapshot& base, const Snapshot& ours, const Snapshot& theirs, const MergeLabels& labels,
                      const ReadEntry& read);
  /// What a revision and a merge of some revisions have in common: the best common ancestor, or where lines were merged
  /// crosswise the merge of several, as git's "recursive" does it; an empty version where nothing is common.
  Result<Snapshot> base_of(const std::vector<RevisionId>& merged, const RevisionId& other);

  /// All of them merged, one after the other. `conflicted` gets those that are left out because they do not merge
  /// cleanly with those before; the first is always in.
  struct Joined {
    Snapshot snapshot;
    std::vector<RevisionId> revisions;
  };
  Result<Joined> join(const std::vector<RevisionId>& revisions,
                      std::map<RevisionId, std::vector<Conflict>>& conflicted);

 private:
  Result<Snapshot> virtual_base(std::vector<RevisionId> bases, int depth);
  Result<std::vector<RevisionId>> bases_of(const std::vector<RevisionId>& merged, const RevisionId& other);

  Upstream& upstream_;
  const MergeVersions merge_;
  std::map<RevisionId, Link> links_;
  const FindLink find_ = [this](const RevisionId& id) { return find_link(id); };
  Result<std::optional<Link>> find_link(const RevisionId& id);
};

}  // namespace playfs::publish
