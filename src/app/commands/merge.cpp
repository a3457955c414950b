// playfs merge: merges another revision of the project into the work tree.
#include "app/commands/commands.h"
#include "app/commit_report.h"
#include "app/json_fields.h"
#include "app/work_tree_access.h"

namespace playfs::app {

Result<ExitCode> merge(CommandContext& context, const MergeArguments& arguments) {
  PLAYFS_TRY(auto tree, open_work_tree(context, context.io.absolute(arguments.path), "merge"));
  auto merged = tree->merge(arguments.revision);
  if (!merged) {
    Error error = merged.error();
    if (error.code == ErrorCode::not_found) error.hint = "playfs branches, to list the revisions that can be merged";
    return fail(std::move(error));
  }
  const vfs::UpdateResult& result = *merged;
  PLAYFS_TRY(JsonObject status, tree->status_document());
  const Json* merging = status.find("merging");
  bool is_taken_in = merging && merging->array() && !merging->array()->empty();
  if (!is_taken_in) context.out.note("Already merged: it is part of " + safe(result.base) + ".");
  else if (result.conflicts == 0)
    context.out.note("Merged without conflicts. Try: playfs diff, then playfs commit -m MESSAGE");
  ExitCode code = tell_conflicts(context.out, result.conflicts);
  context.out.document(JsonObject{{"project", tree->place().project},
                                  {"base", result.base},
                                  {"merged", arguments.revision},
                                  {"to_commit", is_taken_in},
                                  {"conflicts", static_cast<std::uint64_t>(result.conflicts)}});
  return code;
}

}  // namespace playfs::app
