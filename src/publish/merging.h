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

/// What two sides have in common.
struct CommonBase {
  Snapshot snapshot;
  /// Why it cannot be told. Then nothing is merged unasked: a file that only one side has was added there or deleted
  /// here, and nobody knows which.
  std::string unknown = {};
};

class Merging {
 public:
  explicit Merging(Upstream& upstream, MergeVersions merge = merge_versions)
      : upstream_(upstream), merge_(std::move(merge)) {}

  /// What is known of revisions without asking for them again, from a listing.
  void learn(const Link& link) { known_.insert_or_assign(link.id, link); }
  [[nodiscard]] const Links& links() const { return links_; }

  Result<Merge> merge(const Snapshot& base, const Snapshot& ours, const Snapshot& theirs,
                      const MergeLabels& labels = {});
  /// The same with another reader.
  Result<Merge> merge(const Snapshot& base, const Snapshot& ours, const Snapshot& theirs, const MergeLabels& labels,
                      const ReadEntry& read);
  /// What a revision and a merge of some revisions have in common: the best common ancestor, or where lines were merged
  /// crosswise the merge of several, as git's "recursive" does it; an empty version where both began on nothing.
  Result<CommonBase> base_of(const std::vector<RevisionId>& merged, const RevisionId& other);

  /// All of them merged, one after the other. `conflicted` gets those that are left out because they do not merge
  /// cleanly with those before; the first is always in.
  struct Joined {
    Snapshot snapshot;
    std::vector<RevisionId> revisions;
  };
  Result<Joined> join(const std::vector<RevisionId>& revisions,
                      std::map<RevisionId, std::vector<Conflict>>& conflicted);

 private:
  Result<CommonBase> virtual_base(const MergeBases& bases, int depth, int& merges);
  Result<MergeBases> bases_of(const std::vector<RevisionId>& merged, const RevisionId& other);
  Result<std::optional<Link>> find_link(const RevisionId& id);
  Result<bool> confirm_merge(const Link& link);

  Upstream& upstream_;
  const MergeVersions merge_;
  std::map<RevisionId, Link> known_;
  std::map<RevisionId, bool> confirmed_;
  const Links links_ = {[this](const RevisionId& id) { return find_link(id); },
                        [this](const Link& link) { return confirm_merge(link); }};
};

}  // namespace playfs::publish
