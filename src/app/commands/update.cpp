// playfs update: moves the work tree's base to head.
#include "app/commands/commands.h"
#include "app/commit_report.h"
#include "app/mounted_work_tree.h"

namespace playfs::app {

Result<ExitCode> update(CommandContext& context, const UpdateArguments& arguments) {
  PLAYFS_TRY(MountedWorkTree tree, MountedWorkTree::open(context.io.absolute(arguments.path)));
  PLAYFS_TRY(playfs_status before, tree.status());
  PLAYFS_TRY(playfs_update result, tree.update());
  std::string base = result.base;
  bool moved = base != before.base;
  context.out.note(moved ? "Updated the work tree to " + safe(base) + "."
                         : "Already up to date at " + safe(base) + ".");
  ExitCode code = tell_conflicts(context.out, result.conflicts);
  context.out.document(JsonObject{{"project", std::string(before.project)},
                                  {"base", base},
                                  {"moved", moved},
                                  {"conflicts", static_cast<std::uint64_t>(result.conflicts)}});
  return code;
}

}  // namespace playfs::app
