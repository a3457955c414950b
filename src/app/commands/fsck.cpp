// playfs fsck: checks what the service has of a project.
#include <fmt/format.h>

#include "app/cancel_on_signal.h"
#include "app/commands/commands.h"
#include "app/fsck/project_check.h"
#include "app/lookup.h"

namespace playfs::app {

namespace {

std::string counts_of(const ProjectCheck& check) {
  return fmt::format("{} revisions with {} files and {} chunks", check.revisions(), check.content().files(),
                     check.content().chunks());
}

ExitCode report_check(CommandContext& context, const runtime::ClientStack& stack, const Project& project,
                      const ProjectCheck& check) {
  const Faults& faults = check.faults();
  const std::uint64_t damage = faults.count(Severity::damage);
  faults.print(context.out);
  context.out.line(damage == 0 ? fmt::format("Sound: {}.", counts_of(check))
                               : fmt::format("Damage found: {}, in {}.", damage, counts_of(check)));
  context.out.document(JsonObject{{"site", stack.source().text},
                                  {"project", project.id.text()},
                                  {"head", project.latest_revision.text()},
                                  {"sound", damage == 0},
                                  {"damage", damage},
                                  {"notices", faults.count(Severity::notice)},
                                  {"branches", faults.count(Severity::branch)},
                                  {"revisions", check.revisions()},
                                  {"files", check.content().files()},
                                  {"chunks", check.content().chunks()},
                                  {"findings", faults.documents()}});
  return damage == 0 ? ExitCode::done : ExitCode::failed;
}

Result<ExitCode> check_project(CommandContext& context, const FsckArguments& arguments, const CancelToken& cancel) {
  PLAYFS_TRY(auto stack, context.open_client_stack());
  PLAYFS_TRY(Project project, find_project(context, *stack, arguments.project));
  auto progress = [&](const ProjectCheck& check) { context.out.progress_line("Checked " + counts_of(check)); };
  ProjectCheck check(*stack, project, {arguments.uses_cache, progress}, cancel);
  if (const Status done = check.run(); !done) {
    check.faults().print(context.out);
    return fail(done.error().while_doing("not all of project " + project.id.text() + " was checked (only " +
                                         counts_of(check) + ")"));
  }
  return report_check(context, *stack, project, check);
}

}  // namespace

Result<ExitCode> fsck(CommandContext& context, const FsckArguments& arguments) {
  const CancelOnSignal interrupted;
  auto code = check_project(context, arguments, interrupted.token());
  // If a signal came, the process ends with `interrupted`.
  if (!code && code.error().code == ErrorCode::interrupted) code = context.out.error(code.error());
  context.io.out.flush();
  return code;
}

}  // namespace playfs::app
