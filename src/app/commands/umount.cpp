// playfs umount: ends a mount, and reports what stays staged.
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "app/commands/commands.h"
#include "app/mount_point.h"
#include "app/mount_record.h"
#include "app/mount_status.h"
#include "app/mounted.h"
#include "base/fd.h"
#include "base/shell.h"
#include "fuse/session.h"
#include "runtime/probe.h"

namespace playfs::app {

namespace {

constexpr std::chrono::milliseconds kPollPublications{200};
constexpr std::chrono::milliseconds kPatienceWithDaemon{30'000};

/// The mount at exactly this path. A mount that does not answer cannot identify itself, so the path's text decides,
/// after resolving its parent's links if that answers.
Result<runtime::MountEntry> mount_at(const std::string& path, const runtime::Probe::Answer& looked) {
  const std::string& real = looked.real;
  PLAYFS_TRY(auto table, read_mount_table());
  const runtime::MountEntry* mount = runtime::mount_holding(table, real);
  const bool is_ours =
      mount != nullptr &&
      (mount->type == kMountType || (looked.state == runtime::Probe::State::answers && !source_of(*mount).empty()));
  if (is_ours && mount->mount_point == real) return *mount;
  if (is_ours)
    return fail(ErrorCode::not_found, path + " is inside a mount, but is not its mount point",
                "playfs umount " + shell_operand(mount->mount_point));
  return fail(ErrorCode::not_found, "no playfs mount at " + path, "findmnt -t " + std::string(kMountType));
}

void wait_for_publications(CommandContext& context, const std::string& mount_point) {
  bool told = false;
  for (;;) {
    auto status = read_mount_status(mount_point);
    if (!status || !status->publishing) return;
    if (!told) context.out.note("Waiting for a publication to finish; press Ctrl-C to keep the mount.");
    told = true;
    std::this_thread::sleep_for(kPollPublications);
  }
}

/// Waits until the daemon has closed its files, so that the same place can be mounted again at once.
bool wait_for_end(const UniqueFd& process) {
  if (!process) return true;
  pollfd ended{process.get(), POLLIN, 0};
  return poll(&ended, 1, static_cast<int>(kPatienceWithDaemon.count())) > 0;
}

}  // namespace

Result<ExitCode> umount(CommandContext& context, const UmountArguments& arguments) {
  const std::string directory = context.io.absolute(arguments.directory);
  const auto looked = runtime::look_at(directory);
  PLAYFS_TRY(runtime::MountEntry mount, mount_at(directory, looked));
  const bool answers = looked.state == runtime::Probe::State::answers,
             dead = looked.state == runtime::Probe::State::dead;
  if (arguments.wait && answers) wait_for_publications(context, mount.mount_point);
  Result<MountStatus> status = answers ? read_mount_status(mount.mount_point) : runtime::silence_of(directory);
  const std::string again = mount_command(context.places, mount);  // before its process removes the record
  UniqueFd process;
  if (status && status->pid > 0) process = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, status->pid, 0)));
  PLAYFS_CHECK(fuse::unmount(mount.mount_point, dead));
  if (dead) {
    remove_mount_record(context.places, mount.mount_point, mount.device);
    context.out.note("The mount was dead: its process had exited. Its staged changes are kept.");
    context.out.note("Try: " + safe(again));
  }
  if (looked.state == runtime::Probe::State::silent)
    context.out.note(
        "The mount did not answer. Its staged changes are kept but were not listed. Its process may still be running.");
  if (!wait_for_end(process)) context.out.note("Unmounted; its process is still shutting down.");

  Json::Array staged;
  if (status) {
    for (const StagedProject& project : status->staged) {
      staged.push_back(JsonObject{
          {"project", project.id}, {"name", project.name}, {"staged", project.staged}, {"pending", project.pending}});
      context.out.note("Still staged in " + safe(project.name.empty() ? project.id : project.name) + ": " +
                       std::to_string(project.staged) + (project.staged == 1 ? " path" : " paths") +
                       (project.pending > 0 ? ", and a publication that continues at the next mount" : "") + ".");
    }
    if (!staged.empty()) context.out.note("Try: " + safe(again) + ", then playfs commit");
  }
  context.out.document(JsonObject{
      {"site", mount.source}, {"directory", mount.mount_point}, {"dead", dead}, {"staged", std::move(staged)}});
  return ExitCode::done;
}

}  // namespace playfs::app
