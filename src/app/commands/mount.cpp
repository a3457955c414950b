// playfs mount: mounts a service at a directory; the process stays until it is unmounted.
#include <unistd.h>

#include "app/commands/commands.h"
#include "app/mount_point.h"
#include "app/mount_record.h"
#include "app/mounting.h"
#include "fuse/session.h"
#include "runtime/descriptors.h"
#include "runtime/mount_options.h"
#include "runtime/probe.h"
#include "runtime/service_manager.h"

namespace playfs::app {

namespace {

/// The record of a mount at `directory` whose process died, so that it can be mounted again; nullopt if there was none.
/// Fails if that is not certain.
Result<std::optional<MountRecord>> died_here(const CommandContext& context, const std::string& directory) {
  PLAYFS_TRY(auto table, read_mount_table());
  const auto [state, real] = runtime::look_at(directory);
  if (state == runtime::Probe::State::silent) return runtime::silence_of(directory);
  const runtime::MountEntry* mount = runtime::mount_holding(table, real);
  const bool is_mount = mount != nullptr && mount->mount_point == real && mount->type == kMountType;
  if (state == runtime::Probe::State::answers) {
    if (is_mount) return std::optional<MountRecord>();  // it is alive
    // The record stays until the mount is made again: the dead one may have been detached by hand, or by a failed
    // attempt.
    return read_mount_record(context.places, real);
  }
  if (!is_mount) return std::optional<MountRecord>();  // not a mount of playfs, which prepare_mount_point will report
  const std::string dead = "the mount of " + mount->source + " at " + real + " is dead: its process has exited. ";
  if (!runtime::has_option(mount->super_options, "user_id=" + std::to_string(geteuid())))
    return fail(ErrorCode::already_exists, dead + "It belonged to another user, so the source must be given",
                mount_command(context.places, *mount));
  auto record = record_of(context.places, *mount);
  if (!record)
    return fail(ErrorCode::already_exists,
                dead + "Not all of its options are known, so the source must be given (with project=, if it had one)",
                mount_command(context.places, *mount));
  return record;
}

/// The options of `again`, followed and overridden by those typed now.
Status take_options(CommandContext& context, MountPlan& plan, const MountArguments& arguments,
                    const std::optional<MountRecord>& again) {
  if (again) plan.lists = again->options;
  for (const std::string& list : plan.lists)
    PLAYFS_CHECK(runtime::parse_mount_options(list, plan.options, context.settings));
  const runtime::MountOptions before = plan.options;
  for (const std::string& list : arguments.options) {
    PLAYFS_CHECK(runtime::parse_mount_options(list, plan.options, context.settings));
    plan.lists.push_back(list);
  }
  // A revision belongs to the project that it was given with.
  if (plan.options.project != before.project && plan.options.revision == before.revision) plan.options.revision.reset();
  return {};
}

Result<MountPlan> plan_of(CommandContext& context, const MountArguments& arguments) {
  MountPlan plan;
  plan.directory = context.io.absolute(arguments.places.back());
  std::string text = context.settings.text("site").value_or(std::string(runtime::kDefaultSource));
  std::optional<MountRecord> again;
  if (arguments.places.size() == 2) {
    text = arguments.places.front();
  } else if (!context.settings.text_of(runtime::Settings::Layer::flag, "site") &&
             !fuse::passed_device(plan.directory)) {
    PLAYFS_TRY(again, died_here(context, plan.directory));
  }
  if (again) text = again->source;
  PLAYFS_CHECK(take_options(context, plan, arguments, again));
  PLAYFS_TRY(plan.source, context.source(text));
  if (!again) return plan;
  // The name of a local playground may refer to another directory by now.
  if (plan.source.directory != again->store) {
    PLAYFS_TRY(plan.source, context.source("local:" + again->store));
  }
  context.out.note("The last mount at " + safe(plan.directory) +
                   " died. Remounting it: " + safe(mount_command(*again, plan.directory)));
  return plan;
}

}  // namespace

Result<ExitCode> mount(CommandContext& context, const MountArguments& arguments) {
  PLAYFS_TRY(MountPlan plan, plan_of(context, arguments));
  const auto device = fuse::passed_device(plan.directory);
  if (device) {
    PLAYFS_CHECK(check_passed_device(*device));
  } else {
    PLAYFS_TRY(plan.directory,
               prepare_mount_point(plan.directory, plan.options.nonempty, own_places(context, plan.source)));
  }
  if (arguments.fake) return ExitCode::done;
  auto document = [&] { return JsonObject{{"site", plan.source.text}, {"directory", plan.directory}}; };
  if (arguments.foreground) {
    runtime::close_inherited_descriptors(device ? std::vector{*device} : std::vector<int>());
    PLAYFS_CHECK(serve_mount(context, plan, [&]() -> Status {
      context.out.document(document());
      context.io.out.flush();
      runtime::tell_service_manager("READY=1");
      return {};
    }));
    return ExitCode::done;
  }
  PLAYFS_CHECK(mount_in_background(context, plan));
  context.out.note("Mounted " + plan.source.text + " at " + safe(plan.directory) + ".");
  if (arguments.announce) context.out.document(document());
  return ExitCode::done;
}

}  // namespace playfs::app
