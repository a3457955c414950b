// playfs discard: drops staged changes by path.
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "app/commands/commands.h"
#include "app/json_fields.h"
#include "app/work_tree_access.h"
#include "base/shell.h"

namespace playfs::app {

namespace {

struct DiscardTarget {
  std::string named;   ///< as typed
  MountedPlace place;  ///< of its work tree
  std::string path;    ///< in the tree; "" for its root
  WorkTreeAccess* tree = nullptr;
};

/// A link in a work tree stands for itself, not for its target: only the folders above it are resolved.
Result<std::optional<DiscardTarget>> link_at(const std::string& named, const std::string& absolute) {
  struct stat attributes {};
  if (lstat(absolute.c_str(), &attributes) != 0 || !S_ISLNK(attributes.st_mode)) return std::optional<DiscardTarget>();
  const auto slash = absolute.rfind('/');
  const std::string folder = absolute.substr(0, std::max<std::size_t>(slash, 1)), name = absolute.substr(slash + 1);
  auto place = find_project_at(folder);
  if (!place || !place->in_work) return std::optional<DiscardTarget>();
  std::string path = place->in_work->empty() ? name : *place->in_work + "/" + name;
  return std::optional<DiscardTarget>(DiscardTarget{named, *std::move(place), std::move(path)});
}

Result<DiscardTarget> target_of(const CommandContext& context, const std::string& named) {
  const std::string absolute = context.io.absolute(named);
  PLAYFS_TRY(auto link, link_at(named, absolute));
  if (link) return std::move(*link);
  PLAYFS_TRY(MountedPlace place, find_project_at(absolute));
  if (!place.in_work)
    return fail(ErrorCode::invalid_argument, absolute + " is not in the work tree " + place.work,
                "playfs discard " + shell_word(place.work));
  std::string path = *place.in_work;
  return DiscardTarget{named, std::move(place), std::move(path)};
}

}  // namespace

Result<ExitCode> discard(CommandContext& context, const DiscardArguments& arguments) {
  std::vector<std::string> paths = arguments.paths;
  if (paths.empty()) paths.emplace_back(".");
  std::vector<DiscardTarget> targets;
  for (const std::string& path : paths) {
    PLAYFS_TRY(DiscardTarget target, target_of(context, path));
    targets.push_back(std::move(target));
  }
  std::map<std::string, std::unique_ptr<WorkTreeAccess>> trees;  // by their roots
  for (DiscardTarget& target : targets) {
    auto& tree = trees[target.place.work];
    if (!tree) {
      PLAYFS_TRY(tree, open_work_tree(context, target.place, "discard"));
    }
    target.tree = tree.get();
  }
  WorkTreeAccess& last = *targets.back().tree;
  const MountedPlace& place = last.place();
  auto taken_in = [&]() -> Result<std::set<std::string>> {
    PLAYFS_TRY(JsonObject status, last.status_document());
    std::set<std::string> revisions;
    if (const Json::Array* merging = array_of(status, "merging"))
      for (const Json& each : *merging)
        if (each.string()) revisions.insert(*each.string());
    return revisions;
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
  for (const DiscardTarget& target : targets) PLAYFS_CHECK(target.tree->discard(target.path, true));
  std::uint64_t discarded = 0;
  std::string done;
  for (const DiscardTarget& target : targets) {
    auto count = target.tree->discard(target.path, false);
    // A path below one that was named earlier is as published already, and may no longer exist.
    if (!count && count.error().code == ErrorCode::not_found && !done.empty()) continue;
    if (!count && !done.empty()) {
      Error error = count.error();
      error.message += "; already discarded:" + done;
      return fail(std::move(error));
    }
    if (!count) return fail(std::move(count).error());
    discarded += *count;
    done += " " + target.named;
  }
  PLAYFS_TRY(const auto merging, taken_in());
  if (discarded == 0 && merging == merging_before) context.out.note("Nothing is staged there.");
  if (discarded > 0)
    context.out.note("Discarded the changes to " + std::to_string(discarded) + (discarded == 1 ? " path." : " paths."));
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
  context.out.document(JsonObject{{"project", place.project}, {"discarded", discarded}});
  return ExitCode::done;
}

}  // namespace playfs::app
