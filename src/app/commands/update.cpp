// playfs update: the work tree moved to the published latest.
#include "app/commands/commands.h"
#include "app/work_tree.h"

namespace playfs::app {

Result<ExitCode> update(Context& context, const UpdateArguments& arguments) {
  PLAYFS_TRY(WorkTree tree, WorkTree::open(context.io.absolute(arguments.path)));
  PLAYFS_TRY(playfs_status before, tree.status());
  PLAYFS_TRY(playfs_update result, tree.update());
  std::string base = result.base;
  bool moved = base != before.base;
  context.out.note(moved ? "The work tree stands on " + safe(base) + " now."
                         : "Already at the latest, " + safe(base) + ".");
  if (result.conflicts > 0)
    context.out.note(std::to_string(result.conflicts) +
                     (result.conflicts == 1 ? " path is in conflict." : " paths are in conflict.") +
                     " Try: playfs status, edit what it lists, then playfs commit -m MESSAGE");
  context.out.document(JsonObject{{"project", std::string(before.project)},
                                  {"base", base},
                                  {"moved", moved},
                                  {"conflicts", static_cast<std::uint64_t>(result.conflicts)}});
  return result.conflicts > 0 ? ExitCode::branched : ExitCode::done;
}

}  // namespace playfs::app
