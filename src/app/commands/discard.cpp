// playfs discard: drops staged changes by path.
#include <map>
#include <memory>
#include <set>

#include "app/commands/commands.h"
#include "app/json_fields.h"
#include "app/path_in_work.h"
#include "app/work_tree_access.h"
#include "base/shell.h"

namespace playfs::app {

namespace {

/// What is to be discarded in one work tree.
struct TargetsInTree {
  std::unique_ptr<WorkTreeAccess> tree;
  std::vector<std::string> paths;            ///< each once
  std::map<std::string, std::string> named;  ///< as typed, by path
  KeptChanges kept;
};

}  // namespace

Result<ExitCode> discard(CommandContext& context, const DiscardArguments& arguments) {
  std::vector<std::string> paths = arguments.paths;
  if (paths.empty()) paths.emplace_back(".");
  std::vector<PathInWork> targets;
  for (const std::string& path : paths) {
    PLAYFS_TRY(PathInWork at, path_in_work(context, path, "discard"));
    targets.push_back(std::move(at));
  }
  std::map<std::string, TargetsInTree> trees;  // by their roots
  for (const PathInWork& at : targets) {
    TargetsInTree& in = trees[at.place.work];
    if (!in.tree) {
      PLAYFS_TRY(in.tree, open_work_tree(context, at.place, "discard"));
    }
    if (in.named.emplace(at.path, at.named).second) in.paths.push_back(at.path);
  }
  const TargetsInTree& with_last = trees[targets.back().place.work];
  WorkTreeAccess& last = *with_last.tree;
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
  for (const auto& [root, in] : trees) PLAYFS_CHECK(in.tree->discard(in.paths, true));
  std::uint64_t discarded = 0;
  std::string done;
  for (auto& [root, in] : trees) {
    auto dropped = in.tree->discard(in.paths, false);
    if (!dropped) {
      Error error = dropped.error();
      if (!done.empty()) error.message += "; already discarded:" + done;
      return fail(std::move(error));
    }
    discarded += dropped->paths;
    in.kept = std::move(dropped->kept);
    for (const auto& [path, named] : in.named) done += " " + named;
  }
  PLAYFS_TRY(const auto merging, taken_in());
  if (discarded == 0 && merging == merging_before) context.out.note("Nothing is staged there.");
  if (discarded > 0)
    context.out.note("Discarded the changes to " + std::to_string(discarded) + (discarded == 1 ? " path." : " paths."));
  for (const auto& [root, in] : trees) {
    auto word = [&named = in.named](const std::string& path) { return shell_operand(named.at(path)); };
    for (const KeptChanges::Kept& each : in.kept.all())
      context.out.note("To bring them back: playfs checkpoint restore " + std::to_string(each.checkpoint) +
                       each.words(word));
  }
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
  const std::uint64_t checkpoint = with_last.kept.latest();
  context.out.document(JsonObject{{"project", place.project},
                                  {"discarded", discarded},
                                  {"checkpoint", checkpoint == 0 ? Json() : Json(checkpoint)}});
  return ExitCode::done;
}

}  // namespace playfs::app
