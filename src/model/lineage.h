// Determines from parent links what each revision of a project holds, and finds tips and merge bases. Pure, except for
// the functions passed in that find a revision and confirm a merge.
//
// Each revision contributes one piece of content, named by its id, or by its `tx` together with its content: a commit
// posted twice is one piece, but a revision from a client that merely copied a `tx` is another. A confirmed automatic
// merge contributes none. A revision holds its own piece and those of all its ancestors. Another revision *covers* it
// by holding strictly more, or the same while being older. Uncovered revisions are the *tips*. Merges of the same tips
// hold the same content, so concurrent clients cannot keep merging each other's merges.
//
// Timestamps affect only the order in which ancestors are visited: clocks may be wrong, and anyone can write a history.
// If a line cannot be read to its end, nothing is assumed to hold what lies beyond.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/tree.h"

namespace playfs {

/// A revision as a node of the history graph.
struct Link {
  RevisionId id;
  WallTime created_at;
  std::vector<RevisionId> parents;
  std::string content;    ///< name of its own piece
  std::string tx = {};    ///< as in the manifest; any client may have copied it there
  bool is_merge = false;  ///< claims to be an automatic merge
  bool operator==(const Link&) const = default;
};
Link link_of(const Revision& revision, const Manifest& manifest);
Link link_of(const RevisionTree& tree);

/// Returns nullopt if the revision's parents cannot be known.
using FindLink = std::function<Result<std::optional<Link>>(const RevisionId&)>;
/// Whether a revision that claims it is exactly the merge of its parents. Called only if the answer matters.
using ConfirmMerge = std::function<Result<bool>(const Link&)>;

struct Links {
  FindLink find;
  ConfirmMerge confirm;
};

/// The most revisions one query visits: histories are untrusted and may have any shape.
inline constexpr std::size_t kMostLinks = 16'384;

/// What each compared revision holds beyond what all of them share.
class Holdings {
 public:
  /// Walks from `of` until only common ancestors remain. Fails only if a function in `links` fails.
  static Result<Holdings> compare(const std::vector<RevisionId>& of, const Links& links);

  /// Whether `a` provably holds all that `b` holds. REQUIRES, here and below: both were compared.
  [[nodiscard]] bool covers(const RevisionId& a, const RevisionId& b) const;
  [[nodiscard]] bool equal(const RevisionId& a, const RevisionId& b) const { return covers(a, b) && covers(b, a); }
  /// Whether `a` provably holds that piece; pieces common to all revisions are not considered.
  [[nodiscard]] bool holds(const RevisionId& a, const std::string& content) const;
  /// An order that is the same for every client and stable as both lines grow: first the revision with the oldest piece
  /// that the other lacks.
  [[nodiscard]] bool comes_before(const RevisionId& a, const RevisionId& b) const;

 private:
  struct Piece {
    std::string content;
    WallTime created_at;  ///< of the oldest revision that contributed it
    RevisionId id;        ///< of that revision
    std::vector<bool> held;
  };
  [[nodiscard]] std::size_t number(const RevisionId& id) const;
  [[nodiscard]] bool covers(std::size_t one, std::size_t other) const;
  Status add_claimed(std::vector<std::pair<Link, Piece>> claimed, const Links& links);

  std::vector<RevisionId> of_;
  std::vector<WallTime> times_;
  std::vector<Piece> pieces_;  ///< oldest first
};

/// The uncovered `revisions`, ordered by Holdings::comes_before. The input may contain ancestors of its other members.
/// Fails only if a function in `links` fails.
Result<std::vector<RevisionId>> find_tips(const std::vector<Link>& revisions, const Links& links);

struct MergeBases {
  /// The best common ancestors, newest first; none is an ancestor of another. Criss-cross merges yield several.
  std::vector<RevisionId> ids;
  /// Whether everything above them was read. If not, better bases may exist and these must not be used for a merge:
  /// deletions made above them would look like additions on the other side.
  bool is_whole = true;
  /// There is no common ancestor, and every line starts with a commit whose client states its parents: it was made on
  /// nothing, so a file that it lacks was never deleted.
  bool began_apart = false;
};
/// The merge bases of two revisions. Fails only if `find` fails.
Result<MergeBases> find_merge_bases(const RevisionId& a, const RevisionId& b, const FindLink& find);

}  // namespace playfs
