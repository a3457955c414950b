// Which revisions of a project hold what, judged from their parents: content sets, tips, merge bases. Pure but for the
// functions that find a revision and look into one.
//
// Every revision has one piece of content of its own, named by its id, or by its `tx` together with what it holds: one
// commit that was posted twice is one piece, and what a client posts that carried a `tx` along is another. An automatic
// merge has none, once it is seen to be one. What a revision holds is its own and all of its ancestors'. A revision is
// *covered* by another that holds strictly more, or the same and is older. The uncovered ones are the *tips*. Merges of
// the same tips hold the same, so clients that merge at the same time cannot keep on merging each other's merges.
//
// Times say in which order ancestors are looked at, and nothing else: clocks are set, and histories come from anyone.
// Where a line cannot be read to its end, what lies beyond is not guessed at: nobody is said to hold it.
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

/// A revision as one of a line.
struct Link {
  RevisionId id;
  WallTime created_at;
  std::vector<RevisionId> parents;
  std::string content;    ///< its own piece
  std::string tx = {};    ///< as the manifest has it; anyone may have copied it there
  bool is_merge = false;  ///< says of itself that it is an automatic merge
  bool operator==(const Link&) const = default;
};
Link link_of(const Revision& revision, const Manifest& manifest);
Link link_of(const RevisionTree& tree);

/// nullopt: nobody can tell what its parents are.
using FindLink = std::function<Result<std::optional<Link>>(const RevisionId&)>;
/// Whether a revision that says so is the merge of its parents, and nothing besides. Asked only where it matters.
using ConfirmMerge = std::function<Result<bool>(const Link&)>;

struct Links {
  FindLink find;
  ConfirmMerge confirm;
};

/// The most revisions that a question looks at: histories come from strangers and may be of any form.
inline constexpr std::size_t kMostLinks = 16'384;

/// What some revisions hold beyond what all of them have in common.
class Holdings {
 public:
  /// Walks from `of` to where only common ancestors are left. Fails only where one of `links` does.
  static Result<Holdings> compare(const std::vector<RevisionId>& of, const Links& links);

  /// Whether `a` is seen to hold all that `b` holds. REQUIRES, here and below: both were compared.
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
  [[nodiscard]] bool covers(std::size_t one, std::size_t other) const;
  Status add_claimed(std::vector<std::pair<Link, Piece>> claimed, const Links& links);

  std::vector<RevisionId> of_;
  std::vector<WallTime> times_;
  std::vector<Piece> pieces_;  ///< oldest first
};

/// The uncovered ones of `revisions`, in the order of Holdings::comes_before. Revisions that are ancestors of others
/// among them need not be left out before. Fails only where one of `links` does.
Result<std::vector<RevisionId>> find_tips(const std::vector<Link>& revisions, const Links& links);

struct MergeBases {
  /// The best common ancestors, newest first: none of them is an ancestor of another. More than one where lines were
  /// merged crosswise.
  std::vector<RevisionId> ids;
  /// Nothing was left unread above them. Otherwise there may be better ones, and nothing may be merged by these: what
  /// was deleted above them would look as if it had been added.
  bool is_whole = true;
  /// Nothing is common, and every line begins with a commit that names what it is made on: it was made on nothing, so
  /// what it lacks was never deleted by it.
  bool began_apart = false;
};
/// Of two revisions. Fails only where `find` does.
Result<MergeBases> find_merge_bases(const RevisionId& a, const RevisionId& b, const FindLink& find);

}  // namespace playfs
