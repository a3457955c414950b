// The base of an import: the revision that a directory is an edit of, against which it is published. Blocking.
#pragma once

#include <optional>
#include <string>

#include "app/command_context.h"
#include "app/tree_origin.h"
#include "base/result.h"
#include "model/ids.h"
#include "runtime/client_stack.h"

namespace playfs::app {

struct ImportBase {
  RevisionId revision;  ///< empty: the project has none yet
  RevisionId beside;    ///< a second revision that the directory contains, to become a further parent; usually empty
  bool known = true;    ///< false: head was assumed, so the import must not undo anything of head
  bool lacks_files = false;  ///< the directory may never have had all files, so nothing must be deleted
  std::string export_id;     ///< of the export that made the directory; empty: of none
};

/// The record of which revision `directory` (a real path) was made from, for one project.
class ImportOrigin {
 public:
  /// `mark` is the one in the directory itself. If it is of another site or project, it says only that what was
  /// imported from there before that export was something else, and whether files are missing.
  static Result<ImportOrigin> open(runtime::ClientStack& stack, const ProjectId& project, const std::string& directory,
                                   const std::optional<TreeOrigin>& mark);

  [[nodiscard]] const std::optional<TreeOrigin>& origin() const { return origin_; }
  /// Some files were never in the directory, so they do not count as deleted.
  [[nodiscard]] bool lacks_files() const { return lacks_files_; }
  /// Of the mark; empty if there is none.
  [[nodiscard]] const std::string& export_id() const { return here_.export_id; }
  /// Records that the directory holds what `revision` holds.
  [[nodiscard]] Status move_to(const RevisionId& revision) const;

 private:
  std::string directory_;
  std::string remembered_;  ///< the file in the state directory
  bool is_marked_ = false;  ///< the mark is of this project: it counts, rather than the remembered file
  bool lacks_files_ = false;
  TreeOrigin here_;
  std::optional<TreeOrigin> origin_;
};

/// `named`: the value of --base, a revision, or the project for its head.
Result<ImportBase> base_of_import(const CommandContext& context, runtime::ClientStack& stack, const ProjectId& project,
                                  const RevisionId& head, const std::optional<TreeOrigin>& origin,
                                  const std::optional<std::string>& named);

}  // namespace playfs::app
