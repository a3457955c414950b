// playfs status: shows what is staged in the work tree around a path, and its publication's progress.
#include "app/commands/commands.h"
#include "app/work_tree_access.h"
#include "base/text.h"

namespace playfs::app {

Result<ExitCode> status(CommandContext& context, const StatusArguments& arguments) {
  PLAYFS_TRY(auto tree, open_work_tree(context, context.io.absolute(arguments.path), "status"));
  if (!context.out.json()) {
    PLAYFS_TRY(std::string text, tree->status_text());
    context.out.bytes(escape_for_terminal(text, true));  // the mount may be another user's
    return ExitCode::done;
  }
  PLAYFS_TRY(JsonObject document, tree->status_document());
  document.erase("schema_version");
  context.out.document(std::move(document));
  return ExitCode::done;
}

}  // namespace playfs::app
