// playfs discard: drops staged changes by path.
#include <map>
#include <memory>
#include <set>

#include "app/commands/commands.h"
#include "app/json_fields.h"
#include "app/kept_changes.h"
#include "app/path_in_work.h"
#include "app/work_tree_access.h"
#include "base/shell.h"

namespace playfs::app {

namespace {

struct DiscardTarget {
  PathInWork at;
  WorkTreeAccess* tree = nullptr;
};

}  // namespace

Result<ExitCode> discard(CommandContext& context, const DiscardArguments& arguments) {
  std::vector<std::string> paths = arguments.paths;
  if (paths.empty()) paths.emplace_back(".");
  std::vector<DiscardTarget> targets;
  for (const std::string& path : paths) {
    PLAYFS_TRY(PathInWork at, path_in_work(context, path, "discard"));
    targets.push_back({std::move(at)});
  }
  std::map<std::string, std::unique_ptr<WorkTreeAccess>> trees;  // by their roots
  for (DiscardTarget& target : targets) {
    auto& tree = trees[target.at.place.work];
    if (!tree) {
      PLAYFS_TRY(tree, open_work_tree(context, target.at.place, "discard"));
    }
    target.tree = tree.get();
  }
  WorkTreeAccess& last = *targets.back().tree;
  const MountedPlace& place = last.place();
  auto taken_in = [&]() -> Result<std::set<std::string>> {
    PLAYFS_TRY(JsonObject status, last.status_document());
    const auto revisions = revisions_merged(status);
    return std::set<std::string>(revisions.begin(), revisions.end());
  };
  auto in_conflict = [&]() -> Result<std::set<std::string>> {
    PLAYFS_TRY(JsonObject status, last.status_document());
    std::set<std::string> paths;
    if (const Json::Array* conflicts = array_of(status, "conflicts"))
      for (const Json& each : *conflicts)
        if (each.object()) paths.insert(text_of(*each.object(), "path"));
    return paths;
  };
  PLAYFS_TRY(const auto merging_before, taken_in());
  PLAYFS_TRY(const auto conflicts_before, in_conflict());
  // Check all of them before changing anything.
  for (const DiscardTarget& target : targets) PLAYFS_CHECK(target.tree->discard(target.at.path, true));
  std::uint64_t discarded = 0;
  std::string done;
  std::map<WorkTreeAccess*, KeptChanges> kept;
  for (const DiscardTarget& target : targets) {
    KeptChanges& in = kept[target.tree];
    auto count = target.tree->discard(target.at.path, false, in.latest());
    // A path below one that was named earlier is as published already, and may no longer exist.
    if (!count && count.error().code == ErrorCode::not_found && !done.empty()) continue;
    if (!count && !done.empty()) {
      Error error = count.error();
      error.message += "; already discarded:" + done;
      return fail(std::move(error));
    }
    if (!count) return fail(std::move(count).error());
    discarded += count->paths;
    done += " " + target.at.named;
    // Where nothing was staged there is nothing to restore either.
    if (count->paths > 0 || target.at.path.empty()) in.add(count->checkpoint, shell_operand(target.at.named));
  }
  PLAYFS_TRY(const auto merging, taken_in());
  if (discarded == 0 && merging == merging_before) context.out.note("Nothing is staged there.");
  if (discarded > 0)
    context.out.note("Discarded the changes to " + std::to_string(discarded) + (discarded == 1 ? " path." : " paths."));
  for (const auto& [tree, in] : kept)
    for (const KeptChanges::Kept& each : in.all())
      context.out.note("To bring them back: playfs checkpoint restore " + std::to_string(each.checkpoint) + each.paths);
  PLAYFS_TRY(auto conflicts, in_conflict());
  std::erase_if(conflicts, [&](const std::string& path) { return conflicts_before.contains(path); });
  if (!conflicts.empty())
    context.out.note(conflicts.size() == 1
                         ? "1 local-only path is in conflict: no rule ignores it any more. Try: playfs status"
                         : std::to_string(conflicts.size()) +
                               " local-only paths are in conflict: no rule ignores them any more. Try: "
                               "playfs status");
  for (const auto& revision : merging_before)
    if (!merging.contains(revision)) context.out.note("Abandoned the merge of " + safe(revision) + ".");
  if (discarded > 0)
    for (const auto& revision : merging)
      context.out.note("Still merging " + safe(revision) +
                       ": the next commit merges it without what was discarded. To abandon the merge: playfs discard " +
                       shell_word(place.work));
  context.out.document(JsonObject{{"project", place.project},
                                  {"discarded", discarded},
                                  {"checkpoint", kept[&last].latest() == 0 ? Json() : Json(kept[&last].latest())}});
  return ExitCode::done;
}

}  // namespace playfs::app
