// playfs mount: mounts a service at a directory; the process stays until it is unmounted.
#include <malloc.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

#include "app/author.h"
#include "app/commands/commands.h"
#include "app/mount_point.h"
#include "app/mount_record.h"
#include "base/fd.h"
#include "base/log.h"
#include "fuse/session.h"
#include "runtime/daemon.h"
#include "runtime/descriptors.h"
#include "runtime/hardening.h"
#include "runtime/mount_options.h"
#include "runtime/probe.h"
#include "runtime/signals.h"
#include "vfs/mount_file_system.h"

namespace playfs::app {

namespace {

struct Plan {
  runtime::Source source;
  std::string directory;                // as named, absolute
  runtime::MountOptions options;        // parsed from `lists`
  std::vector<std::string> lists = {};  // as after -o
};

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
Status take_options(CommandContext& context, Plan& plan, const MountArguments& arguments,
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

Result<Plan> plan_of(CommandContext& context, const MountArguments& arguments) {
  Plan plan;
  plan.directory = context.io.absolute(arguments.places.back());
  std::string text = context.settings.text("site").value_or(std::string(runtime::kDefaultSource));
  std::optional<MountRecord> again;
  if (arguments.places.size() == 2) {
    text = arguments.places.front();
  } else if (!context.settings.text_of(runtime::Settings::Layer::flag, "site")) {
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

/// What is needed to mount `plan` again.
MountRecord record_for(const Plan& plan) {
  MountRecord record{plan.source.text, plan.source.directory, plan.lists, {}, {}};
  if (const runtime::Source usual; plan.source.base_path != usual.base_path)
    record.options.push_back(runtime::mount_option("base_path", plan.source.base_path));
  return record;
}

/// Keeps the mount's record as long as it lives. The mount works without one, too.
class KeptRecord {
 public:
  KeptRecord(const runtime::Places& places, const Plan& plan) : places_(places), mount_point_(plan.directory) {
    auto written = write_mount_record(places, mount_point_, record_for(plan));
    if (written) device_ = *written;
    else log_warning("cannot record the mount: " + written.error().message);
  }
  ~KeptRecord() {
    if (!device_.empty()) remove_mount_record(places_, mount_point_, device_);
  }
  KeptRecord(const KeptRecord&) = delete;
  KeptRecord& operator=(const KeptRecord&) = delete;

 private:
  const runtime::Places& places_;
  const std::string mount_point_;
  std::string device_;
};

vfs::FileSystemOptions playground_options(const CommandContext& context, const Plan& plan,
                                          std::string state_directory) {
  const runtime::MountOptions& asked = plan.options;
  vfs::FileSystemOptions options;
  options.state_directory = std::move(state_directory);
  options.mount_source = plan.source.text;
  options.version = PLAYFS_VERSION;
  Author author = author_at(context, plan.source.text);
  options.agent = std::move(author.handle);
  options.agent_from = name_of(author.origin);
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

/// Serves until it is unmounted or stopped by a signal. Calls `ready` once it is mounted.
template <class Ready>
Status serve_mount(CommandContext& context, const Plan& plan, Ready ready) {
  runtime::outlive_readers();
  runtime::forgo_core_dumps();
  runtime::raise_descriptor_limit();  // each waiting reader may cost one
  // Few malloc arenas, so that memory freed by one thread can be used by others.
  mallopt(M_ARENA_MAX, 4);
  runtime::TerminationSignals signals;
  PLAYFS_TRY(auto stack, runtime::ClientStack::open(plan.source, context.settings, context.places, context.io.clock,
                                                    context.io.random));
  PLAYFS_TRY(std::string state, stack->state_directory());
  state += runtime::kMountState;
  PLAYFS_CHECK(make_private_directory(state));
  stack->site().use_events(stack->random());
  vfs::MountFileSystem playground(stack->site(), stack->clock(), stack->executor(), stack->random(),
                                  playground_options(context, plan, std::move(state)));
  fuse::MountOptions options;
  options.mountpoint = plan.directory;
  options.source = plan.source.text;
  options.allow_other = plan.options.allow_other;
  options.read_only = plan.options.read_only || plan.options.revision;
  options.no_exec = plan.options.no_exec;
  options.synchronous = plan.options.synchronous;
  options.keeps_links = !plan.options.safe_symlinks;  // with it, a link's location decides, each time it is read
  std::optional<KeptRecord> record;                   // destroyed after the session, and so after the mount
  PLAYFS_TRY(auto session, fuse::Session::mount(playground, options));
  record.emplace(context.places, plan);
  playground.set_notifier(&session->notifier());
  playground.set_close_watcher(session->close_watcher());
  if (auto limit = session->request_limit()) playground.set_request_limit(*limit);
  signals.on_signal([&] { session->stop(); });
  Status served = ready();
  if (served) {
    playground.resume();
    served = session->run();
  }
  signals.end();
  if (session->has_unanswered()) {
    if (!served) log_error(served.error().message);
    // As safe as kill -9: everything acknowledged is on disk.
    session->unmount_at_last();
    record.reset();
    context.io.out.flush();
    _exit(static_cast<int>(ExitCode::failed));
  }
  playground.set_close_watcher(nullptr);
  playground.set_notifier(nullptr);
  return served;
}

Result<std::string> log_path(const CommandContext& context) {
  std::string directory = context.places.state + "/log";
  PLAYFS_CHECK(make_private_directory(directory));
  return directory + "/mount.log";
}

/// The kernel's first request is answered only once the mount is being served.
Status wait_until_it_answers(const std::string& directory) {
  struct statfs usage {};
  if (statfs(directory.c_str(), &usage) == 0) return {};
  return fail(error_from_errno(errno, "the mount at " + directory + " does not answer"));
}

}  // namespace

Result<ExitCode> mount(CommandContext& context, const MountArguments& arguments) {
  PLAYFS_TRY(Plan plan, plan_of(context, arguments));
  PLAYFS_TRY(plan.directory,
             prepare_mount_point(plan.directory, plan.options.nonempty, own_places(context, plan.source)));
  if (arguments.fake) return ExitCode::done;
  auto document = [&] { return JsonObject{{"site", plan.source.text}, {"directory", plan.directory}}; };
  if (arguments.foreground) {
    runtime::close_inherited_descriptors();
    PLAYFS_CHECK(serve_mount(context, plan, [&]() -> Status {
      context.out.document(document());
      context.io.out.flush();
      return {};
    }));
    return ExitCode::done;
  }

  PLAYFS_TRY(std::string log, log_path(context));
  PLAYFS_TRY(auto report, runtime::go_to_background());
  if (report) {
    auto served = serve_mount(context, plan, [&]() -> Status {
      PLAYFS_CHECK(log_to_file(log));
      return report->ready(log);
    });
    if (!served) {
      log_error(served.error().message);
      report->failed(served.error());
    }
    // The parent writes what the command has buffered.
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
