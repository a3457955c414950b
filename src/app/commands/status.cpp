// playfs status: shows what is staged in the work tree around a path, and its publication's progress.
#include "app/commands/commands.h"
#include "app/json_fields.h"
#include "app/mounted.h"
#include "base/fd.h"

namespace playfs::app {

namespace {

constexpr std::size_t kLargestText = 16 << 20;

}  // namespace

Result<ExitCode> status(CommandContext& context, const StatusArguments& arguments) {
  PLAYFS_TRY(MountedPlace place, find_project_at(context.io.absolute(arguments.path)));
  if (!context.out.json()) {
    PLAYFS_TRY(std::string text, read_file(place.project_directory + "/status", kLargestText));
    context.out.bytes(escape_for_terminal(text, true));  // the mount may be another user's
    return ExitCode::done;
  }
  PLAYFS_TRY(JsonObject document, read_json_object(place.project_directory + "/status.json"));
  document.erase("schema_version");
  context.out.document(std::move(document));
  return ExitCode::done;
}

}  // namespace playfs::app
