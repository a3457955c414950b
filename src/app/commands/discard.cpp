// playfs discard: staged changes dropped, path by path.
#include "app/commands/commands.h"
#include "app/work_tree.h"

namespace playfs::app {

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
    PLAYFS_TRY(std::uint32_t count, tree.discard(absolute));
    discarded += count;
  }
  context.out.note("Discarded the changes of " + std::to_string(discarded) + (discarded == 1 ? " path." : " paths."));
  context.out.document(JsonObject{{"project", project}, {"discarded", discarded}});
  return ExitCode::done;
}

}  // namespace playfs::app
