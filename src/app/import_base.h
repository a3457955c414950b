// What an import of a directory into a project is an edit of: the revision against which it is published. Blocking.
#pragma once

#include <optional>
#include <string>

#include "app/tree_origin.h"
#include "app/world.h"
#include "base/result.h"
#include "model/ids.h"

namespace playfs::app {

struct ImportBase {
  RevisionId revision;  ///< empty: of none, it is the project's first
  RevisionId beside;    ///< a second one that the directory holds too: a further parent; mostly empty
  bool known = true;    ///< false: it is head for want of anything better, so nothing of head may be undone
};

/// Where it is written down which revision `directory` (real) was made from, for one project.
class ImportOrigin {
 public:
  /// `mark`: the one in the directory itself. What it says of another site or project does not count.
  static Result<ImportOrigin> open(World& world, const ProjectId& project, const std::string& directory,
                                   const std::optional<TreeOrigin>& mark);

  [[nodiscard]] const std::optional<TreeOrigin>& origin() const { return origin_; }
  /// The directory holds what `revision` holds.
  [[nodiscard]] Status move_to(const RevisionId& revision) const;

 private:
  std::string directory_;
  std::string remembered_;  ///< the file in the state directory
  bool is_marked_ = false;  ///< it is an exported tree of this project
  TreeOrigin here_;
  std::optional<TreeOrigin> origin_;
};

/// `named`: the revision that the user names with --base, or the project for its head.
Result<ImportBase> base_of_import(World& world, const ProjectId& project, const RevisionId& head,
                                  const std::optional<TreeOrigin>& origin, const std::optional<std::string>& named);

}  // namespace playfs::app
