// The revision that last changed each line of a file. Blocking; for one thread.
//
// Histories and files come from strangers: missing parents are skipped, cycles end, and how many parents are looked at
// is bounded as in a history (history.h).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/history.h"
#include "app/path_history.h"
#include "compare/text_diff.h"

namespace playfs::app {

using ShownRevisionPtr = std::shared_ptr<const ShownRevision>;

struct BlamedLine {
  std::string text;           ///< without its line break
  ShownRevisionPtr revision;  ///< nullptr: it has not been published
  std::string path;           ///< of the file in that revision, or now
};

/// The version of a file that is not a revision's: that of the work tree.
struct UnpublishedFile {
  std::shared_ptr<const ReadableTree> tree;
  std::vector<RevisionId> parents;  ///< what the work tree is based on, and merges
};

class Blame {
 public:
  /// `revisions` must outlive it.
  Blame(RevisionSource& revisions, TreeOf tree_of) : revisions_(revisions), tree_of_(std::move(tree_of)) {}

  /// Errors: not_found (a directory is no file), file_too_big.
  Result<std::vector<BlamedLine>> lines_of(const std::string& path, const RevisionId& revision);
  Result<std::vector<BlamedLine>> lines_of(const std::string& path, const UnpublishedFile& file);
  /// Whether any parents were not looked up.
  [[nodiscard]] bool left_parents_out() const { return left_out_; }

 private:
  /// A line as one version of the file has it, and as the last one has it. From 1.
  struct Line {
    std::size_t here = 0, last = 0;
  };
  /// A version of the file; `revision` is nullptr for the unpublished one.
  struct Version {
    ShownRevisionPtr revision;
    std::vector<RevisionId> parents;
    std::shared_ptr<const ReadableTree> tree;
    std::string path;
    FileEntry entry;
    std::optional<std::string> text = {};
    std::vector<Line> lines = {};  ///< whose origin is this version or an older one
  };
  using VersionPtr = std::shared_ptr<Version>;
  /// The newest is last; a version is taken once no newer one is left.
  using Order = std::pair<WallTime, std::pair<RevisionId, std::string>>;

  Result<std::vector<BlamedLine>> blame(const VersionPtr& last);
  Status pass_on(Version& version);
  Result<VersionPtr> version_in(const RevisionId& revision, const Version& child);
  Result<VersionPtr> version_of(ShownRevisionPtr revision, const std::string& path, const Version* child);
  static Status read(Version& version);

  RevisionSource& revisions_;
  const TreeOf tree_of_;
  std::map<RevisionId, ShownRevisionPtr> found_;  ///< nullptr: there is none
  std::map<Order, VersionPtr> waiting_;
  std::map<Order, unsigned> taken_;  ///< how often a version was
  std::vector<BlamedLine> blamed_;
  vfs::ParentBudget budget_;
  bool left_out_ = false;
};

/// For each line of the newer text, from 1 (element 0 is not used): its number in the older one, 0 if that lacks it.
/// `lines`: those of the newer text.
std::vector<std::size_t> numbers_before(const compare::TextDiff& diff, std::size_t lines);

}  // namespace playfs::app
