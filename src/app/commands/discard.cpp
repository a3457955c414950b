// playfs discard: staged changes dropped, path by path.
#include <sys/stat.h>

#include <algorithm>

#include "app/commands/commands.h"
#include "app/json_fields.h"
#include "app/work_tree.h"

namespace playfs::app {

namespace {

/// Whether there is anything to ask about: a path, or the deletion of one.
Result<bool> is_there_or_staged(const MountedPlace& place, const std::string& path) {
  struct stat ignored {};
  if (lstat(path.c_str(), &ignored) == 0) return true;
  PLAYFS_TRY(JsonObject status, read_json_object(place.project_directory + "/status.json"));
  const Json::Array* staged = array_of(status, "staged");
  return staged != nullptr && std::any_of(staged->begin(), staged->end(), [&](const Json& each) {
           const std::string changed = each.object() ? text_of(*each.object(), "path") : std::string();
           return changed == *place.in_work || changed.starts_with(*place.in_work + "/");
         });
}

}  // namespace

Result<ExitCode> discard(Context& context, const DiscardArguments& arguments) {
  std::vector<std::string> paths = arguments.paths;
  if (paths.empty()) paths.emplace_back(".");
  std::uint64_t discarded = 0;
  std::string project;
  for (const std::string& path : paths) {
    std::string absolute = context.io.absolute(path);
    PLAYFS_TRY(WorkTree tree, WorkTree::open(absolute));
    if (!tree.place().in_work)
      return fail(ErrorCode::invalid_argument, absolute + " is not in the work tree " + tree.place().work,
                  "playfs discard " + tree.place().work);
    project = tree.place().project;
    PLAYFS_TRY(bool known, is_there_or_staged(tree.place(), absolute));
    if (!known)
      return fail(ErrorCode::not_found, path + " is not there, and nothing is staged at or below it", "playfs status");
    PLAYFS_TRY(std::uint32_t count, tree.discard(absolute));
    discarded += count;
  }
  if (discarded == 0) context.out.note("Nothing is staged there.");
  else
    context.out.note("Discarded the changes of " + std::to_string(discarded) + (discarded == 1 ? " path." : " paths."));
  context.out.document(JsonObject{{"project", project}, {"discarded", discarded}});
  return ExitCode::done;
}

}  // namespace playfs::app
