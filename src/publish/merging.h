// Merges revisions: finds merge bases in the graph of parents, and combines versions in memory.
//
// The result depends only on the revisions, so every client gets the same. For one thread; blocking.
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

/// A version of the project: a revision's, or a merge that was not published. In the latter, merged text is inline,
/// whatever its size.
struct Snapshot {
  RevisionTreePtr near;  ///< the revision, or one that was merged; nullptr for an empty version
  Manifest manifest;
  Json state;
  /// Bytes of files that exist only here: their entries have a hash but neither text nor chunks.
  std::map<std::string, Bytes, std::less<>> own = {};
};
Snapshot snapshot_of(const RevisionTreePtr& revision);

/// The result of a clean merge as a version. At conflicts it has what Merge::files has.
Snapshot snapshot_of(const Merge& merge, const Snapshot& ours);

/// The merge function; tests replace it to plant faults.
using MergeVersions = std::function<Result<Merge>(const Version& base, const Version& ours, const Version& theirs,
                                                  const ReadEntry& read, const MergeLabels& labels)>;

/// The merge base of two sides.
struct CommonBase {
  Snapshot snapshot;
  /// Why the merge base is unknown; then nothing is merged unasked: a file that only one side has was either added
  /// there or deleted on the other side, and nobody knows which.
  std::string unknown = {};
};

class Merging {
 public:
  explicit Merging(Upstream& upstream, MergeVersions merge = merge_versions)
      : upstream_(upstream), merge_(std::move(merge)) {}

  /// Adds a revision that a list showed, so that it need not be requested.
  void learn(const Link& link) { known_.insert_or_assign(link.id, link); }
  [[nodiscard]] const Links& links() const { return links_; }

  Result<Merge> merge(const Snapshot& base, const Snapshot& ours, const Snapshot& theirs,
                      const MergeLabels& labels = {});
  /// The same with another reader.
  Result<Merge> merge(const Snapshot& base, const Snapshot& ours, const Snapshot& theirs, const MergeLabels& labels,
                      const ReadEntry& read);
  /// The merge base of a revision and a merge of some revisions: the best common ancestor; if lines were merged
  /// criss-cross, the merge of several, as in git's "recursive"; an empty version if both began with nothing.
  Result<CommonBase> base_of(const std::vector<RevisionId>& merged, const RevisionId& other);

  /// Merges all of them, one after the other. Those that do not merge cleanly with the ones before are left out and go
  /// to `conflicted`; the first is always in.
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
