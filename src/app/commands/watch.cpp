// playfs watch: prints the events of a mount as they happen: moved heads, publications, messages, outages; or what
// enters its inbox.
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>
#include <tuple>

#include "app/commands/commands.h"
#include "app/conversation.h"
#include "app/json_fields.h"
#include "app/lookup.h"
#include "app/mount_status.h"
#include "app/mounted.h"
#include "base/fd.h"
#include "model/path.h"
#include "vfs/control/growing_file.h"
#include "wire/json.h"

namespace playfs::app {

namespace {

constexpr std::size_t kLargestLog = 16 << 20;
/// Polled, since a FUSE file system cannot send inotify events for its files.
constexpr std::chrono::milliseconds kLookEvery{300};
/// The interval for the inbox of a service without events, where each look sends requests.
constexpr std::chrono::seconds kAskEvery{3};

/// How many of the last lines may have changed since, or be gone.
constexpr int kMostChanged = 16;

void remove_last_line(std::string& text) {
  const auto end_of_previous = text.size() < 2 ? std::string::npos : text.rfind('\n', text.size() - 2);
  text.resize(end_of_previous + 1);  // npos + 1 is 0
}

/// The lines of `now` after the last line of `before` that it still contains.
std::string new_lines(std::string before, const std::string& now) {
  for (int changed = 0; changed < kMostChanged; ++changed) {
    if (auto fresh = vfs::lines_after(before, now)) return std::move(*fresh);
    remove_last_line(before);
  }
  return now;
}

/// The events file of a mount, or its inbox, read again when it has changed.
class Events {
 public:
  explicit Events(std::string path) : path_(std::move(path)) {}

  /// The events since the last call; none at the first. Fails if the mount has ended.
  Result<std::string> more() {
    struct stat now {};
    if (stat(path_.c_str(), &now) != 0) return fail(error_from_errno(errno, path_));
    if (begun_ && now.st_ino == seen_.st_ino && now.st_size == seen_.st_size) return std::string();
    PLAYFS_TRY(std::string text, read_file(path_, kLargestLog));
    seen_ = now;
    const bool first = !std::exchange(begun_, true);
    // After a burst that pushed the known lines out, everything in the file is new.
    std::string fresh = first ? "" : new_lines(std::exchange(known_, {}), text);
    known_ = std::move(text);
    return fresh;
  }

 private:
  const std::string path_;
  bool begun_ = false;
  struct stat seen_ {};
  std::string known_;
};

/// An event that names no record, such as an outage, concerns everybody.
bool is_about(const std::string& line, const WatchArguments& wanted, const std::string& project) {
  if (!wanted.thread && project.empty()) return true;
  auto event = wire::parse_json(line);
  const JsonObject* fields = event ? event->object() : nullptr;
  if (fields == nullptr) return true;
  const std::string kind = text_of(*fields, "kind"), id = text_of(*fields, "id");
  if (wanted.thread) {
    if (kind == "thread") return id == *wanted.thread;
    return kind == "message" ? text_of(*fields, "thread") == *wanted.thread
                             : id.empty() && fields->find("project") == nullptr;
  }
  if (kind == "project") return id == project;
  return fields->find("project") == nullptr ? id.empty() : text_of(*fields, "project") == project;
}

/// The mount follows only what is in use, so a watcher counts as a user.
void use(const MountedPlace& place, const WatchArguments& wanted, const std::string& project) {
  std::array<char, 4096> ignored{};
  struct stat attributes {};
  const std::string directory = wanted.project ? place.mount_point + "/projects/" + project : place.project_directory;
  if (!project.empty()) std::ignore = readlink((directory + "/head").c_str(), ignored.data(), ignored.size());
  if (wanted.thread)
    std::ignore = stat((place.mount_point + "/threads/" + *wanted.thread + "/thread.json").c_str(), &attributes);
}

/// The mount at `path`; with --site, it must be of that service.
Result<MountedPlace> place_of(const CommandContext& context, const std::string& path) {
  PLAYFS_TRY(auto place, find_mount(path));
  std::string of_site;
  if (context.settings.text_of(runtime::Settings::Layer::flag, "site")) {
    PLAYFS_TRY(const runtime::Source site, context.source());
    if (place && place->source == site.text) return std::move(*place);
    of_site = " of " + site.text;
  } else if (place) {
    return std::move(*place);
  }
  return fail(
      ErrorCode::not_found, "watch follows a mount, and " + path + " is not in a mount" + of_site,
      "playfs mount DIR, then playfs watch DIR; without a mount: " + context.next_command({{"inbox", "--wait"}}));
}

/// The same with names resolved to ids, as the mount's events and paths have them.
Result<WatchArguments> with_ids(CommandContext& context, const MountedPlace& place, WatchArguments wanted) {
  if (!wanted.thread && !wanted.project) return wanted;
  PLAYFS_TRY(const runtime::Source source, context.source(place.source));
  PLAYFS_TRY(auto stack, context.open_client_stack(source));
  if (wanted.thread) {
    PLAYFS_TRY(const Record thread, find_record(context, *stack, kThread, *wanted.thread));
    wanted.thread = thread.id;
  }
  if (wanted.project) {
    PLAYFS_TRY(const Project project, find_project(context, *stack, *wanted.project));
    wanted.project = project.id.text();
  }
  for (const auto& id : {wanted.thread, wanted.project})
    if (id && why_not_a_component(*id)) return fail(ErrorCode::refused_input, "the id '" + *id + "' cannot be a name");
  return wanted;
}

}  // namespace

Result<ExitCode> watch(CommandContext& context, const WatchArguments& given) {
  PLAYFS_TRY(const MountedPlace place, place_of(context, context.io.absolute(given.path)));
  PLAYFS_TRY(const WatchArguments arguments, with_ids(context, place, given));
  const std::string project = arguments.thread ? "" : arguments.project.value_or(place.project);
  Events events(place.mount_point + (arguments.mentions ? "/inbox/messages.ndjson" : "/.playfs/events"));
  PLAYFS_CHECK(events.more());
  context.out.note("Watching " + safe(place.mount_point) + ".");
  std::uint64_t printed = 0;
  for (;;) {
    if (!arguments.mentions) use(place, arguments, project);
    auto fresh = events.more();
    if (!fresh) {
      context.out.note("The mount has ended.");
      return ExitCode::done;
    }
    for (std::size_t begin = 0; begin < fresh->size();) {
      const std::size_t end = std::min(fresh->find('\n', begin), fresh->size());
      const std::string line = fresh->substr(begin, end - begin);
      begin = end + 1;
      if (!arguments.mentions && !is_about(line, arguments, project)) continue;
      context.out.bytes(safe_json(line) + "\n");
      if (++printed == arguments.limit) return ExitCode::done;
    }
    context.io.out.flush();
    if (!context.io.out) return ExitCode::failed;
    const bool asks = arguments.mentions && !is_told_of_changes(place.mount_point);
    std::this_thread::sleep_for(asks ? std::chrono::milliseconds(kAskEvery) : kLookEvery);
  }
}

}  // namespace playfs::app
