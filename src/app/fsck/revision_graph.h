// The revisions of a project and their parents, as `playfs fsck` checks them: all of them are known, so it can tell
// what head does not reach. Parents are strangers' claims and may form any shape. Plain; for one thread.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/ids.h"

namespace playfs::app {

class RevisionGraph {
 public:
  void add(RevisionId id, std::vector<RevisionId> parents);
  [[nodiscard]] bool has(const RevisionId& id) const { return index_.contains(id); }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }

  struct Edge {
    RevisionId child, parent;
  };
  /// The links to revisions that were not added, by child in the order of addition; each link once.
  [[nodiscard]] std::vector<Edge> to_unknown() const;

  struct Cycle {
    RevisionId first;  ///< the one that was added first
    std::size_t length = 0;
  };
  /// Cycles of parents: all, unless some share revisions.
  [[nodiscard]] std::vector<Cycle> cycles() const;

  struct Branch {
    RevisionId tip;
    std::size_t revisions = 0;  ///< on it, and neither on head's line nor on an earlier branch
  };
  /// What `head` does not reach: the revisions without a child, in the order of addition.
  [[nodiscard]] std::vector<Branch> beside(const RevisionId& head) const;

 private:
  using Index = std::uint32_t;
  struct Node {
    RevisionId id;
    std::vector<RevisionId> parents;
  };
  /// For each node, its parents that were added.
  [[nodiscard]] std::vector<std::vector<Index>> links() const;

  std::vector<Node> nodes_;
  std::unordered_map<RevisionId, Index> index_;
};

}  // namespace playfs::app
