// playfs checkpoint: keeps what is staged, lists what was kept, and stages it again.
#include <algorithm>
#include <charconv>

#include "app/commands/commands.h"
#include "app/commit_report.h"
#include "app/json_fields.h"
#include "app/path_in_work.h"
#include "app/work_tree_access.h"
#include "base/shell.h"
#include "vfs/control/control_text.h"

namespace playfs::app {

namespace {

/// What takes less space needs no decision.
constexpr std::uint64_t kWorthMentioning = 1 << 20;

std::string paths_words(std::uint64_t count) { return std::to_string(count) + (count == 1 ? " path" : " paths"); }

Json id_or_null(std::uint64_t id) { return id == 0 ? Json() : Json(id); }

Result<std::uint64_t> parse_id(const std::string& text) {
  std::uint64_t id = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id == 0)
    return fail(ErrorCode::not_found, "there is no checkpoint '" + text + "'", "playfs checkpoint list");
  return id;
}

std::string line_of(const JsonObject& checkpoint) {
  const std::string id = std::to_string(number_of(checkpoint, "id"));
  if (const std::string damage = text_of(checkpoint, "damage"); !damage.empty()) return id + "  " + safe(damage);
  const std::string message = text_of(checkpoint, "message");
  const std::uint64_t bytes = number_of(checkpoint, "bytes");
  return id + "  " + safe(text_of(checkpoint, "created_at")) + "  " + paths_words(number_of(checkpoint, "paths")) +
         (bytes < kWorthMentioning ? "" : "  " + vfs::size_words(bytes)) +
         (message.empty() ? "" : "  " + safe(message.substr(0, message.find('\n'))));
}

void tell_restored(Output& out, const vfs::RestoreResult& result, const std::string& id, const std::string& paths,
                   const std::string& work) {
  if (result.paths == 0) return out.note("Nothing to restore: it is all as in checkpoint " + id + ".");
  out.note("Restored " + paths_words(result.paths) + " from checkpoint " + id + ".");
  if (result.base_then != result.base_now)
    out.note("The work tree has moved from " + (result.base_then.empty() ? "nothing" : safe(result.base_then)) +
             " to " + (result.base_now.empty() ? "nothing" : safe(result.base_now)) +
             " since. Try: playfs diff, which shows what would be published over it");
  if (result.before != 0)
    out.note("To take this back: playfs checkpoint restore " + std::to_string(result.before) + paths);
  else
    out.note("Nothing was staged before. To take this back: playfs discard" +
             (paths.empty() ? " " + shell_operand(work) : paths));
}

}  // namespace

Result<ExitCode> checkpoint(CommandContext& context, const CheckpointArguments& arguments) {
  PLAYFS_TRY(auto tree, open_work_tree(context, context.io.absolute(arguments.path), "checkpoint"));
  PLAYFS_TRY(const vfs::CheckpointResult made, tree->checkpoint(arguments.message));
  if (made.id == 0) context.out.note("Nothing is staged, so no checkpoint was made.");
  else {
    context.out.line(std::to_string(made.id));
    context.out.note("Kept " + paths_words(made.paths) + ". To return to them: playfs checkpoint restore " +
                     std::to_string(made.id));
  }
  context.out.document(
      JsonObject{{"project", tree->place().project}, {"checkpoint", id_or_null(made.id)}, {"paths", made.paths}});
  return ExitCode::done;
}

Result<ExitCode> list_checkpoints(CommandContext& context, const CheckpointListArguments& arguments) {
  PLAYFS_TRY(auto tree, open_work_tree(context, context.io.absolute(arguments.path), "checkpoint list"));
  PLAYFS_TRY(const JsonObject status, tree->status_document());
  const Json::Array* found = array_of(status, "checkpoints");
  Json::Array listed = found ? *found : Json::Array();
  for (const Json& each : listed)
    if (each.object()) context.out.line(line_of(*each.object()));
  if (listed.empty()) context.out.note("There are no checkpoints. Try: playfs checkpoint -m TEXT");
  else context.out.note("Try: playfs checkpoint restore ID");
  context.out.document(JsonObject{{"project", tree->place().project}, {"checkpoints", std::move(listed)}});
  return ExitCode::done;
}

Result<ExitCode> drop_checkpoints(CommandContext& context, const CheckpointDropArguments& arguments) {
  std::vector<std::uint64_t> ids;
  for (const std::string& text : arguments.ids) {
    PLAYFS_TRY(const std::uint64_t id, parse_id(text));
    ids.push_back(id);
  }
  PLAYFS_TRY(auto tree, open_work_tree(context, context.io.absolute("."), "checkpoint drop"));
  Json::Array dropped;
  for (const std::uint64_t id : ids) {
    PLAYFS_CHECK(tree->drop_checkpoint(id));
    context.out.note("Dropped checkpoint " + std::to_string(id) + ".");
    dropped.emplace_back(id);
  }
  context.out.document(JsonObject{{"project", tree->place().project}, {"dropped", std::move(dropped)}});
  return ExitCode::done;
}

Result<ExitCode> restore_checkpoint(CommandContext& context, const CheckpointRestoreArguments& arguments) {
  PLAYFS_TRY(const std::uint64_t id, parse_id(arguments.id));
  vfs::RestoreRequest request{id, {}};
  std::string named;
  std::optional<MountedPlace> place;
  for (const std::string& path : arguments.paths) {
    PLAYFS_TRY(PathInWork at, path_in_work(context, path, "checkpoint restore " + arguments.id));
    if (place && at.place.work != place->work)
      return fail(ErrorCode::invalid_argument, path + " is not in the work tree " + place->work);
    request.paths.push_back(at.path);
    named += " " + shell_operand(path);
    place = std::move(at.place);
  }
  if (!place) {
    PLAYFS_TRY(place, find_project_at(context.io.absolute(".")));
  }
  PLAYFS_TRY(auto tree, open_work_tree(context, *place, "checkpoint restore"));
  auto merged = [&]() -> Result<std::vector<std::string>> {
    PLAYFS_TRY(const JsonObject status, tree->status_document());
    return revisions_merged(status);
  };
  PLAYFS_TRY(const auto merged_before, merged());
  PLAYFS_TRY(const vfs::RestoreResult result, tree->restore(request));
  tell_restored(context.out, result, arguments.id, named, place->work);
  PLAYFS_TRY(const auto merged_now, merged());
  for (const std::string& revision : merged_before)
    if (std::find(merged_now.begin(), merged_now.end(), revision) == merged_now.end())
      context.out.note("Abandoned the merge of " + safe(revision) + ", which the checkpoint does not have.");
  const ExitCode code = tell_conflicts(context.out, result.conflicts);
  context.out.document(JsonObject{{"project", tree->place().project},
                                  {"checkpoint", id},
                                  {"restored", static_cast<std::uint64_t>(result.paths)},
                                  {"before", id_or_null(result.before)},
                                  {"conflicts", static_cast<std::uint64_t>(result.conflicts)},
                                  {"base_then", result.base_then},
                                  {"base_now", result.base_now}});
  return code;
}

}  // namespace playfs::app
