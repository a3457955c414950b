// playfs run: runs a command in a project's work tree, which is mounted for that command alone.
//
// This process moves into a mount namespace of its own, starts a daemon that mounts and serves the work tree there, and
// then the command. It stays single-threaded until the command has ended, because a process with threads may neither
// enter a user namespace nor fork safely.
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>

#include "app/commands/commands.h"
#include "app/json_fields.h"
#include "app/mount_point.h"
#include "app/mount_status.h"
#include "app/mounting.h"
#include "base/fd.h"
#include "base/private_place.h"
#include "base/shell.h"
#include "fuse/session.h"
#include "runtime/private_mounts.h"
#include "runtime/probe.h"
#include "runtime/relayed_command.h"
#include "vfs/control/control_text.h"

namespace playfs::app {

namespace {

constexpr const char* kMountVariable = "PLAYFS_MOUNT";
/// A daemon gives requests 30 seconds to end.
constexpr std::chrono::milliseconds kPatienceWithServer{40'000};

/// What was typed, up to the command: "playfs run demo --site SRC".
std::string same_run(const CommandContext& context, const RunArguments& arguments) {
  return context.next_command({{"run"}, {arguments.project}});
}

/// The mount point is always the same for a project, so that build systems which note absolute paths can go on.
Result<MountPlan> plan_of_run(CommandContext& context, const RunArguments& arguments) {
  MountPlan plan;
  PLAYFS_TRY(plan.source, context.source());
  plan.project = arguments.project;
  plan.ends_with_parent = true;
  if (arguments.agent) plan.lists.push_back(runtime::mount_option("agent", *arguments.agent));
  if (arguments.instructions) plan.lists.push_back(runtime::mount_option("instructions", *arguments.instructions));
  if (arguments.read_only) plan.lists.emplace_back("ro");
  for (const std::string& list : plan.lists)
    PLAYFS_CHECK(runtime::parse_mount_options(list, plan.options, context.settings));
  plan.directory = context.places.state + "/run/" + runtime::as_component(arguments.project);
  PLAYFS_CHECK(make_private_directory_below(context.places.state, plan.directory));
  return plan;
}

/// The daemon, for as long as it is needed.
class Server {
 public:
  explicit Server(pid_t pid) : pid_(pid), process_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}
  ~Server() { end(); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// It unmounts what is in use by detaching it.
  void stop() {
    if (pid_ > 0) kill(pid_, SIGTERM);
  }
  /// Waits until its files are closed, so that the same project can be mounted again at once. False if it takes long.
  bool end() {
    if (pid_ <= 0) return true;
    pollfd ended{process_.get(), POLLIN, 0};
    const int count = process_ ? poll(&ended, 1, static_cast<int>(kPatienceWithServer.count())) : 1;
    if (count <= 0) return false;
    int how = 0;
    while (waitpid(pid_, &how, 0) < 0 && errno == EINTR) continue;
    was_killed_ = WIFSIGNALED(how);
    pid_ = 0;
    return true;
  }
  [[nodiscard]] bool was_killed() const { return was_killed_; }

 private:
  pid_t pid_;
  const UniqueFd process_;
  bool was_killed_ = false;
};

Result<pid_t> start_server(CommandContext& context, MountPlan& plan) {
  const Status separated = runtime::separate_mounts();
  PLAYFS_TRY(plan.directory, prepare_mount_point(plan.directory, false, own_places(context, plan.source)));
  auto server = mount_in_background(context, plan);
  if (separated) return server;
  if (!server && server.error().code == ErrorCode::not_permitted) return fail(with_other_ways(separated.error()));
  if (server)
    context.out.note("User namespaces are refused here, so this user's other processes see the work tree too: " +
                     safe(plan.directory));
  return server;
}

/// Opens the work tree, which another process may have open, or which may not be there without the service.
Status check_work_tree(const MountPlan& plan) {
  PLAYFS_TRY(const JsonObject status, read_json_object(plan.directory + "/.playfs/project/status.json"));
  const Json* writable = status.find("writable");
  if (plan.options.read_only || (writable != nullptr && writable->boolean().value_or(false))) return {};
  return fail(ErrorCode::busy, "the work tree cannot be written: " + text_of(status, "reason"),
              "work there, or end that mount first; --read-only shows what is published");
}

/// Says what stays staged, and returns the number of paths.
std::uint64_t tell_staged(CommandContext& context, const RunArguments& arguments, const std::string& directory) {
  if (runtime::look_at(directory).state != runtime::Probe::State::answers) return 0;
  const auto status = read_mount_status(directory);
  if (!status || status->staged.empty()) return 0;
  const StagedProject& project = status->staged.front();
  context.out.note("Still staged in " + safe(arguments.project) + ": " + std::to_string(project.staged) +
                   (project.staged == 1 ? " path" : " paths") +
                   (project.pending > 0 ? ", and a publication that goes on at the next run or mount" : "") + ".");
  return project.staged;
}

/// Unmounts; if processes that the command left running still use the mount, stops the daemon, which detaches it.
void end_mount(CommandContext& context, const std::string& directory, Server& server) {
  const Status unmounted = fuse::unmount(directory, false);
  if (!unmounted) {
    if (unmounted.error().code == ErrorCode::busy)
      context.out.note("The command left processes behind that use the work tree: it is no longer there for them.");
    server.stop();
  }
  if (!server.end()) context.out.note("Unmounted; its process is still shutting down.");
  if (server.was_killed()) context.out.note("The mount's process had died. What was staged is kept.");
}

/// Commits, and returns the exit code of the whole. `document`: the outcome.
ExitCode commit_run(CommandContext& context, const RunArguments& arguments, const std::string& directory,
                    JsonObject& document) {
  CommitArguments wanted;
  wanted.path = directory;
  wanted.message = arguments.message;
  wanted.agent = arguments.agent;
  const std::string again = same_run(context, arguments);
  const auto code = commit_after_run(
      context, wanted, again + " -- playfs update, edit, then " + again + " --commit -m MERGE -- true", document);
  if (!code) {
    document.append("error", vfs::error_json(code.error()));
    if (!context.out.json()) context.out.error(code.error());
  }
  const ExitCode result = code ? *code : exit_code_for(code.error().code);
  if (result != ExitCode::done && result != ExitCode::branched)
    context.out.note("Nothing is lost. In the work tree again: " + safe(again) + " -- playfs status");
  return result;
}

/// Ends this process as its command ended, so that a shell script does not go on after Ctrl-C.
[[noreturn]] void end_by_interrupt(CommandContext& context) {
  context.io.out.flush();
  std::signal(SIGINT, SIG_DFL);
  raise(SIGINT);
  _exit(128 + SIGINT);
}

}  // namespace

Result<ExitCode> run_command(CommandContext& context, const RunArguments& arguments) {
  PLAYFS_TRY(MountPlan plan, plan_of_run(context, arguments));
  PLAYFS_TRY(const pid_t pid, start_server(context, plan));
  Server server(pid);
  if (auto usable = check_work_tree(plan); !usable) {
    server.stop();
    return fail(usable.error());
  }
  const auto ended = runtime::run_relayed(arguments.command, plan.directory, {{kMountVariable, plan.directory}});
  if (!ended) {
    server.stop();
    return fail(ended.error());
  }
  if (ended->not_started) context.out.note("playfs: " + escape_for_terminal(ended->not_started->message, true));
  auto code = static_cast<ExitCode>(ended->code);
  JsonObject document{
      {"site", plan.source.text}, {"directory", plan.directory}, {"exit_code", static_cast<std::int64_t>(ended->code)}};
  if (arguments.commit && code == ExitCode::done) {
    JsonObject outcome;
    code = commit_run(context, arguments, plan.directory, outcome);
    document.append("commit", std::move(outcome));
  } else if (arguments.commit) {
    context.out.note("The command failed, so nothing was published.");
  }
  document.append("staged", tell_staged(context, arguments, plan.directory));
  end_mount(context, plan.directory, server);
  context.out.document(std::move(document));
  if (ended->interrupted) end_by_interrupt(context);
  return code;
}

}  // namespace playfs::app
