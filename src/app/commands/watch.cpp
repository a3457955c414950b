// playfs watch: prints the events of a mount as they happen: moved heads, publications, outages.
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>
#include <tuple>

#include "app/commands/commands.h"
#include "app/json_fields.h"
#include "app/mounted.h"
#include "base/fd.h"
#include "vfs/control/growing_file.h"
#include "wire/json.h"

namespace playfs::app {

namespace {

constexpr std::size_t kLargestLog = 16 << 20;
/// Polled, since a FUSE file system cannot send inotify events for its files.
constexpr std::chrono::milliseconds kLookEvery{300};

std::string last_line(const std::string& text) {
  if (text.size() < 2) return text;
  const auto end_of_previous = text.rfind('\n', text.size() - 2);
  return end_of_previous == std::string::npos ? text : text.substr(end_of_previous + 1);
}

/// The events file of a mount, read again when it has changed.
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
    // After a burst that pushed the last known line out, everything in the file is new.
    std::string fresh = first ? "" : vfs::lines_after(last_, text).value_or(text);
    if (!text.empty()) last_ = last_line(text);
    return fresh;
  }

 private:
  const std::string path_;
  bool begun_ = false;
  struct stat seen_ {};
  std::string last_;
};

bool is_about(const std::string& line, const std::string& project) {
  if (project.empty()) return true;
  auto event = wire::parse_json(line);
  const JsonObject* fields = event ? event->object() : nullptr;
  // An event without a project, such as an outage, concerns all of them.
  return fields == nullptr || fields->find("project") == nullptr || text_of(*fields, "project") == project;
}

/// The mount polls heads only of projects in use, so a watcher counts as a user.
void use(const MountedPlace& place) {
  std::array<char, 4096> ignored{};
  if (!place.project.empty())
    std::ignore = readlink((place.project_directory + "/head").c_str(), ignored.data(), ignored.size());
}

}  // namespace

Result<ExitCode> watch(CommandContext& context, const WatchArguments& arguments) {
  const std::string path = context.io.absolute(arguments.path);
  PLAYFS_TRY(auto place, find_mount(path));
  if (!place) return fail(ErrorCode::not_found, path + " is not in a playfs mount", "playfs mount DIR");
  Events events(place->mount_point + "/.playfs/events");
  PLAYFS_CHECK(events.more());
  context.out.note("Watching " + safe(place->mount_point) + ".");
  std::uint64_t printed = 0;
  for (;;) {
    use(*place);
    auto fresh = events.more();
    if (!fresh) {
      context.out.note("The mount has ended.");
      return ExitCode::done;
    }
    for (std::size_t begin = 0; begin < fresh->size();) {
      const std::size_t end = std::min(fresh->find('\n', begin), fresh->size());
      const std::string line = fresh->substr(begin, end - begin);
      begin = end + 1;
      if (!is_about(line, place->project)) continue;
      context.out.bytes(safe_json(line) + "\n");
      if (++printed == arguments.limit) return ExitCode::done;
    }
    context.io.out.flush();
    if (!context.io.out) return ExitCode::failed;
    std::this_thread::sleep_for(kLookEvery);
  }
}

}  // namespace playfs::app
