// playfs init: creates an empty project and, given a directory, mounts its work tree there.
#include "app/commands/commands.h"
#include "app/mount_point.h"
#include "app/projects.h"
#include "base/shell.h"
#include "runtime/mount_options.h"

namespace playfs::app {

Result<ExitCode> init(CommandContext& context, const InitArguments& arguments) {
  if (arguments.name.empty()) return fail(ErrorCode::invalid_argument, "a project needs a name", "playfs init NAME");
  PLAYFS_TRY(runtime::Source source, context.source(Marks::do_not_count));
  // Find problems with the mount before creating the project.
  if (arguments.directory)
    PLAYFS_CHECK(prepare_mount_point(context.io.absolute(*arguments.directory), false, own_places(context, source)));
  Record project;
  {
    PLAYFS_TRY(auto stack, context.open_client_stack(source));
    PLAYFS_TRY(project, create_project(*stack, arguments.name));
  }
  const std::string own = runtime::mount_option("project", project.id);
  context.out.line(context.out.is_terminal() ? safe(project.id) : project.id);
  JsonObject document{{"site", source.text}, {"project", project.id}, {"name", arguments.name}};
  if (!arguments.directory) {
    context.out.note("Created the project '" + safe(arguments.name) +
                     "'. Try: " + safe(shell_line({{"playfs", "mount", "-o", own}, {source.text, "DIR"}})));
    context.out.document(std::move(document));
    return ExitCode::done;
  }
  MountArguments where;
  where.places = {source.text, *arguments.directory};
  where.options = {own};
  where.announce = false;
  auto mounted = mount(context, where);
  if (!mounted) return fail(mounted.error().while_doing("the project " + project.id + " was created, but not mounted"));
  document.append("directory", context.io.absolute(*arguments.directory));
  context.out.document(std::move(document));
  return ExitCode::done;
}

}  // namespace playfs::app
