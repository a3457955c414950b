// Which revisions of a project hold what, judged from their parents alone: content sets, tips, merge bases. Pure but
// for the function that finds a revision.
//
// Every revision has one piece of content of its own, named by its `tx` with what it holds (a foreign one's by its id):
// two revisions have the same piece where one commit was posted twice, and not where a client that does not know `tx`
// carried it along. An automatic merge has none; one that has not two parents is none, whatever it says. What a revision holds is its own and all of its ancestors'. A revision is *covered* by another that holds
// strictly more, or the same and is older. The uncovered ones are the *tips*. Merges of the same tips hold the same, so
// clients that merge at the same time cannot keep on merging each other's merges.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/tree.h"

namespace playfs {

/// A revision as one of a line.
struct Link {
  RevisionId id;
  WallTime created_at;
  std::vector<RevisionId> parents;
  std::string content;  ///< its own piece; empty for an automatic merge
  bool operator==(const Link&) const = default;
};
Link link_of(const Revision& revision, const Manifest& manifest);
Link link_of(const RevisionTree& tree);

/// nullopt: the service has no such revision.
using FindLink = std::function<Result<std::optional<Link>>(const RevisionId&)>;

/// The most revisions that a question looks at: histories come from strangers and may be of any form. What lies
/// further back counts as common to all.
inline constexpr std::size_t kMostLinks = 4096;

/// What some revisions hold beyond what all of them have in common.
class Holdings {
 public:
  /// Walks from `of` to where only common ancestors are left. Fails only where `find` does.
  static Result<Holdings> compare(const std::vector<RevisionId>& of, const FindLink& find);

  /// Whether `a` holds all that `b` holds. REQUIRES, here and below: both were compared.
  [[nodiscard]] bool covers(const RevisionId& a, const RevisionId& b) const;
  [[nodiscard]] bool equal(const RevisionId& a, const RevisionId& b) const { return covers(a, b) && covers(b, a); }
  /// Whether that piece of content is seen to be held by `a`, among what is not common to all.
  [[nodiscard]] bool holds(const RevisionId& a, const std::string& content) const;
  /// An order that does not depend on who asks, and does not change as the lines of both grow: first the one that has
  /// the oldest piece which the other has not.
  [[nodiscard]] bool comes_before(const RevisionId& a, const RevisionId& b) const;

 private:
  struct Piece {
    std::string content;
    WallTime created_at;  ///< of the oldest revision that brought it
    RevisionId id;        ///< of that one
    std::vector<bool> held;
  };
  [[nodiscard]] std::size_t number(const RevisionId& id) const;

  std::vector<RevisionId> of_;
  std::vector<WallTime> times_;
  std::vector<Piece> pieces_;  ///< oldest first
};

/// The uncovered ones of `revisions`, in the order of Holdings::comes_before. Revisions that are ancestors of others
/// among them need not be left out before. Fails only where `find` does.
Result<std::vector<RevisionId>> find_tips(const std::vector<Link>& revisions, const FindLink& find);

/// The best common ancestors of two revisions, newest first: none of them is an ancestor of another. More than one
/// where lines were merged crosswise; empty where nothing is common. Fails only where `find` does.
Result<std::vector<RevisionId>> find_merge_bases(const RevisionId& a, const RevisionId& b, const FindLink& find);

}  // namespace playfs
