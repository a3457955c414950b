#include "app/mounting.h"

#include <malloc.h>
#include <sys/prctl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "app/author.h"
#include "app/lookup.h"
#include "app/mount_point.h"
#include "app/mount_record.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/private_place.h"
#include "compare/text_diff.h"
#include "fuse/session.h"
#include "mail/letter.h"
#include "runtime/daemon.h"
#include "runtime/descriptors.h"
#include "runtime/hardening.h"
#include "runtime/signals.h"
#include "vfs/mount_file_system.h"

namespace playfs::app {

namespace {

/// What is needed to mount `plan` again.
MountRecord record_for(const MountPlan& plan) {
  MountRecord record{plan.source.text, plan.source.directory, plan.lists, {}, {}};
  if (const runtime::Source usual; plan.source.base_path != usual.base_path)
    record.options.push_back(runtime::mount_option("base_path", plan.source.base_path));
  return record;
}

/// Keeps the mount's record as long as it lives. The mount works without one, too.
class KeptRecord {
 public:
  KeptRecord(const runtime::Places& places, const MountPlan& plan) : places_(places), mount_point_(plan.directory) {
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

vfs::FileSystemOptions playground_options(const CommandContext& context, const MountPlan& plan,
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
  options.instructions = runtime::instructions_for(context.settings, plan.source.text);
  options.uid = asked.uid.value_or(geteuid());
  options.gid = asked.gid.value_or(getegid());
  options.umask = asked.umask.value_or(022);
  if (auto refresh = context.settings.seconds("refresh", plan.source.text)) options.refresh = *refresh;
  if (asked.project) options.project = ProjectId(*asked.project);
  if (asked.revision) options.revision = RevisionId(*asked.revision);
  return options;
}

fuse::MountOptions kernel_options(const MountPlan& plan) {
  fuse::MountOptions options;
  options.mountpoint = plan.directory;
  if (auto device = fuse::passed_device(plan.directory)) options.seen_at = mount_point_of(*device).value_or("");
  options.source = plan.source.text;
  options.allow_other = plan.options.allow_other;
  options.read_only = plan.options.read_only || plan.options.revision;
  options.no_exec = plan.options.no_exec;
  options.synchronous = plan.options.synchronous;
  options.keeps_links = !plan.options.safe_symlinks;  // with it, a link's location decides, each time it is read
  return options;
}

/// The project is looked for here, where the service is open anyway: the command that starts this process must not
/// have threads yet.
Status find_named_project(const CommandContext& context, runtime::ClientStack& stack, MountPlan& plan) {
  if (!plan.project) return {};
  PLAYFS_TRY(const Project project, find_project(context, stack, *plan.project));
  plan.options.project = project.id.text();
  plan.lists.push_back(runtime::mount_option("project", project.id.text()));
  return {};
}

Result<std::string> log_path(const CommandContext& context) {
  std::string directory = context.places.state + "/log";
  PLAYFS_CHECK(make_private_directory_below(context.places.state, directory));
  return directory + "/mount.log";
}

/// The kernel's first request is answered only once the mount is being served.
Status wait_until_it_answers(const std::string& directory) {
  struct statfs usage {};
  if (statfs(directory.c_str(), &usage) == 0) return {};
  return fail(error_from_errno(errno, "the mount at " + directory + " does not answer"));
}

/// REQUIRES: `parent` started this process.
Status end_with(pid_t parent) {
  if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) return fail(error_from_errno(errno, "watch the command that started it"));
  if (getppid() != parent) return fail(ErrorCode::interrupted, "the command that started it has ended");
  return {};
}

}  // namespace

Status serve_mount(CommandContext& context, MountPlan plan, const std::function<Status()>& ready) {
  runtime::outlive_readers();
  runtime::forgo_core_dumps();
  runtime::raise_descriptor_limit();  // each waiting reader may cost one
  // Few malloc arenas, so that memory freed by one thread can be used by others. Each keeps what some of the largest
  // messages (1 MiB) need: returned to the system, it would have to be mapped page by page again for the next one.
  constexpr int kKept = 4 << 20;
  mallopt(M_ARENA_MAX, 4);
  mallopt(M_TRIM_THRESHOLD, kKept);
  mallopt(M_MMAP_THRESHOLD, kKept);
  PLAYFS_CHECK(compare::load_library());
  PLAYFS_CHECK(runtime::load_library(plan.source));
  runtime::TerminationSignals signals;
  PLAYFS_TRY(auto stack, runtime::ClientStack::open(plan.source, context.settings, context.places, context.io.clock,
                                                    context.io.random));
  stack->start_threads();
  // Only the files for mail programs need it: without it, everything else works.
  if (const Status loaded = mail::load_library(); !loaded) stack->events().error("maildir", loaded.error());
  PLAYFS_CHECK(find_named_project(context, *stack, plan));
  PLAYFS_TRY(std::string state, stack->state_directory());
  state += runtime::kMountState;
  PLAYFS_CHECK(make_private_directory(state));
  stack->site().use_events(stack->random());
  vfs::MountFileSystem playground(stack->site(), stack->clock(), stack->executor(), stack->random(),
                                  playground_options(context, plan, std::move(state)));
  std::optional<KeptRecord> record;  // destroyed after the session, and so after the mount
  auto mounted = fuse::Session::mount(playground, kernel_options(plan));
  if (!mounted) return fail(with_other_ways(std::move(mounted).error()));
  const std::unique_ptr<fuse::Session> session = *std::move(mounted);
  // What somebody else mounted cannot be mounted again by us.
  if (!fuse::passed_device(plan.directory)) record.emplace(context.places, plan);
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

Result<pid_t> mount_in_background(CommandContext& context, const MountPlan& plan) {
  PLAYFS_TRY(std::string log, log_path(context));
  const auto device = fuse::passed_device(plan.directory);
  const pid_t parent = getpid();
  PLAYFS_TRY(auto background, runtime::go_to_background(device ? std::vector{*device} : std::vector<int>()));
  if (auto& report = background.report) {
    auto served = plan.ends_with_parent ? end_with(parent) : Status();
    if (served)
      served = serve_mount(context, plan, [&]() -> Status {
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
  if (device) return background.daemon;  // it may be out of sight here
  if (auto answers = wait_until_it_answers(plan.directory); !answers) {
    (void)fuse::unmount(plan.directory, true);
    return fail(answers.error());
  }
  return background.daemon;
}

}  // namespace playfs::app
