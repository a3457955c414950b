// playfs update: moves the work tree's base to head.
#include "app/commands/commands.h"
#include "app/commit_report.h"
#include "app/work_tree_access.h"

namespace playfs::app {

Result<ExitCode> update(CommandContext& context, const UpdateArguments& arguments) {
  PLAYFS_TRY(auto tree, open_work_tree(context, context.io.absolute(arguments.path), "update"));
  PLAYFS_TRY(const vfs::WorkStatus before, tree->status());
  PLAYFS_TRY(const vfs::UpdateResult result, tree->update());
  const std::string& base = result.base;
  const bool moved = base != before.base;
  context.out.note(moved ? "Updated the work tree to " + safe(base) + "."
                         : "Already up to date at " + safe(base) + ".");
  ExitCode code = tell_conflicts(context.out, result.conflicts);
  context.out.document(JsonObject{{"project", before.project},
                                  {"base", base},
                                  {"moved", moved},
                                  {"conflicts", static_cast<std::uint64_t>(result.conflicts)}});
  return code;
}

}  // namespace playfs::app
