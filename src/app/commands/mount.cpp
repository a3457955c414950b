// playfs mount: a service at a directory, by a process that stays until it is unmounted.
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

#include "app/commands/commands.h"
#include "app/daemon.h"
#include "app/mount_options.h"
#include "app/mount_point.h"
#include "app/signals.h"
#include "base/fd.h"
#include "base/log.h"
#include "fuse/session.h"
#include "vfs/playground.h"

namespace playfs::app {

namespace {

struct Plan {
  Source source;
  std::string directory;  // as it was named, absolute
  MountOptions options;
};

Result<Plan> plan_of(Context& context, const MountArguments& arguments) {
  Plan plan;
  for (const std::string& list : arguments.options)
    PLAYFS_CHECK(parse_mount_options(list, plan.options, context.settings));
  plan.directory = context.io.absolute(arguments.places.back());
  std::string text = std::string(kDefaultSource);
  if (arguments.places.size() == 2) text = arguments.places.front();
  else if (auto configured = context.settings.text("site")) text = *configured;
  PLAYFS_TRY(plan.source, context.source(text));
  return plan;
}

vfs::PlaygroundOptions playground_options(const Context& context, const Plan& plan, std::string state_directory) {
  const MountOptions& asked = plan.options;
  vfs::PlaygroundOptions options;
  options.state_directory = std::move(state_directory);
  options.mount_source = plan.source.text;
  options.version = PLAYFS_VERSION;
  options.agent = context.agent(plan.source.text);
  options.read_only = asked.read_only;
  options.safe_symlinks = asked.safe_symlinks;
  options.uid = asked.uid.value_or(geteuid());
  options.gid = asked.gid.value_or(getegid());
  options.umask = asked.umask.value_or(022);
  if (auto refresh = context.settings.seconds("refresh", plan.source.text)) options.refresh = *refresh;
  if (asked.project) options.project = ProjectId(*asked.project);
  if (asked.revision) options.revision = RevisionId(*asked.revision);
  return options;
}

/// Serves until it is unmounted or told to end. `ready` is called when the mount is there.
template <class Ready>
Status serve_mount(Context& context, const Plan& plan, Ready ready) {
  TerminationSignals signals;
  PLAYFS_TRY(auto world,
             World::open(plan.source, context.settings, context.places, context.io.clock, context.io.random));
  PLAYFS_TRY(std::string state, world->state_directory());
  state += "/work";
  PLAYFS_CHECK(make_private_directory(state));
  vfs::Playground playground(world->site(), world->clock(), world->executor(), world->random(),
                             playground_options(context, plan, std::move(state)));
  fuse::MountOptions options;
  options.mountpoint = plan.directory;
  options.source = plan.source.text;
  options.allow_other = plan.options.allow_other;
  options.read_only = plan.options.read_only || plan.options.revision;
  options.no_exec = plan.options.no_exec;
  options.synchronous = plan.options.synchronous;
  PLAYFS_TRY(auto session, fuse::Session::mount(playground, options));
  playground.set_notifier(&session->notifier());
  signals.on_signal([&] { session->stop(); });
  Status served = ready();
  if (served) {
    playground.resume_publications();
    served = session->run();
  }
  signals.end();
  playground.set_notifier(nullptr);
  return served;
}

Result<std::string> log_path(const Context& context) {
  std::string directory = context.places.state + "/log";
  PLAYFS_CHECK(make_private_directory(directory));
  return directory + "/mount.log";
}

/// The first question to the kernel about the mount is answered only once it is served.
Status wait_until_it_answers(const std::string& directory) {
  struct statfs usage {};
  if (statfs(directory.c_str(), &usage) == 0) return {};
  return fail(error_from_errno(errno, "the mount at " + directory + " does not answer"));
}

}  // namespace

Result<ExitCode> mount(Context& context, const MountArguments& arguments) {
  PLAYFS_TRY(Plan plan, plan_of(context, arguments));
  PLAYFS_TRY(plan.directory,
             prepare_mount_point(plan.directory, plan.options.nonempty, own_places(context, plan.source)));
  if (arguments.fake) return ExitCode::done;
  auto document = [&] { return JsonObject{{"site", plan.source.text}, {"directory", plan.directory}}; };
  if (arguments.foreground) {
    PLAYFS_CHECK(serve_mount(context, plan, [&]() -> Status {
      context.out.document(document());
      context.io.out.flush();
      return {};
    }));
    return ExitCode::done;
  }

  PLAYFS_TRY(std::string log, log_path(context));
  PLAYFS_TRY(auto report, go_to_background());
  if (report) {
    auto served = serve_mount(context, plan, [&]() -> Status {
      PLAYFS_CHECK(log_to_file(log));
      return report->ready(log);
    });
    if (!served) {
      log_error(served.error().message);
      report->failed(served.error());
    }
    // What the command has buffered is the parent's to write.
    _exit(static_cast<int>(served ? ExitCode::done : ExitCode::failed));
  }
  if (auto answers = wait_until_it_answers(plan.directory); !answers) {
    (void)fuse::unmount(plan.directory, true);
    return fail(answers.error());
  }
  context.out.note("Mounted " + plan.source.text + " at " + safe(plan.directory) + ".");
  if (arguments.announce) context.out.document(document());
  return ExitCode::done;
}

}  // namespace playfs::app
