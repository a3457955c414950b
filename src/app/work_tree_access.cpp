#include "app/work_tree_access.h"

#include "app/cloned_work_tree.h"
#include "app/command_context.h"
#include "app/json_fields.h"
#include "app/mounted_tree.h"
#include "app/mounted_work_tree.h"

namespace playfs::app {

std::optional<std::string> revision_named(WorkTreeAccess& tree, const JsonObject& status, const std::string& word) {
  if (word == "head" || word == "base") return text_of(status, word);
  return tree.has_revision(word) ? std::optional(word) : std::nullopt;
}

Result<RevisionId> revision_of(WorkTreeAccess& tree, const JsonObject& status, const std::string& word) {
  const auto revision = revision_named(tree, status, word);
  if (!revision) return fail(ErrorCode::not_found, "the project has no revision '" + word + "'", "playfs log");
  if (revision->empty()) return fail(ErrorCode::not_found, "nothing has been published yet");
  return RevisionId(*revision);
}

std::vector<std::string> revisions_merged(const JsonObject& status) {
  std::vector<std::string> revisions;
  if (const Json::Array* merging = array_of(status, "merging"))
    for (const Json& each : *merging)
      if (each.string()) revisions.push_back(*each.string());
  return revisions;
}

std::unique_ptr<ReadableTree> WorkTreeAccess::work() const { return std::make_unique<MountedTree>(place_.work); }

Result<std::unique_ptr<WorkTreeAccess>> open_work_tree(CommandContext& context, MountedPlace place,
                                                       const std::string& command) {
  if (!place.clone) return std::unique_ptr<WorkTreeAccess>(std::make_unique<MountedWorkTree>(std::move(place)));
  PLAYFS_TRY(auto cloned, ClonedWorkTree::open(context, std::move(place), command));
  return std::unique_ptr<WorkTreeAccess>(std::move(cloned));
}

Result<std::unique_ptr<WorkTreeAccess>> open_work_tree(CommandContext& context, const std::string& path,
                                                       const std::string& command) {
  PLAYFS_TRY(MountedPlace place, find_project_at(path));
  return open_work_tree(context, std::move(place), command);
}

}  // namespace playfs::app
