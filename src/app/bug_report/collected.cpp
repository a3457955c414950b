#include "app/bug_report/collected.h"

#include <pwd.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "app/bug_report/libraries.h"
#include "app/commands/commands.h"
#include "app/mount_record.h"
#include "app/mounted.h"
#include "base/fd.h"
#include "base/text.h"
#include "runtime/credentials.h"
#include "runtime/limited_child.h"
#include "wire/json.h"

namespace playfs::app {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kChildsPatience{5};  ///< for each child
constexpr std::size_t kLargestRead = 1 << 20;
constexpr std::size_t kLastLines = 200;  ///< of a log
constexpr char kRead = 'r';

/// What a child made of a file or a directory; fails if it cannot be read, or not in time.
Result<std::string> in_time(const std::string& what, const std::function<Result<std::string>()>& act) {
  runtime::LimitedChild child(
      [&] {
        auto found = act();
        return found ? kRead + *found : found.error().message;
      },
      kChildsPatience);
  const auto answer = child.answer();
  if (!answer || answer->empty()) return fail(ErrorCode::timed_out, what + ": no answer in time");
  if (answer->front() != kRead) return fail(ErrorCode::io, *answer);
  return answer->substr(1);
}

Result<std::string> file_in_time(const std::string& path) {
  return in_time(path, [&] { return read_file(path, kLargestRead); });
}

/// The end of a file that may be long.
Result<std::string> end_of(const std::string& path) {
  return in_time(path, [&]() -> Result<std::string> {
    std::ifstream file(path);
    if (!file) return fail(error_from_errno(errno, "read " + path));
    std::deque<std::string> lines;
    for (std::string line; std::getline(file, line);) {
      lines.push_back(std::move(line));
      if (lines.size() > kLastLines) lines.pop_front();
    }
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
  });
}

class Collector {
 public:
  Collector(CommandContext& context, Redaction& redaction) : context_(context), redaction_(redaction) {}

  JsonObject all() {
    learn_what_to_hide();
    JsonObject report{{"program", program()}, {"configuration", configuration()}, {"mounts", mounts()}};
    report.append("doctor", doctors_findings());
    report.append("logs", logs());
    report.append("sizes", sizes());
    return report;
  }

 private:
  /// Before anything is read that may have it.
  void learn_what_to_hide() {
    const runtime::Places& places = context_.places;
    if (auto kept = file_in_time(runtime::credentials_path(places))) learn_keys(*kept);
    if (auto home = context_.io.variable("HOME")) redaction_.hide(Hidden::home, *home);
    if (const passwd* user = getpwuid(geteuid()); user != nullptr && std::string_view(user->pw_name) != "root")
      redaction_.hide(Hidden::user, user->pw_name);
    utsname system{};
    if (uname(&system) == 0 && std::string_view(system.nodename) != "localhost")
      redaction_.hide(Hidden::host, system.nodename);
    if (auto agent = context_.settings.text("agent")) redaction_.hide(Hidden::handle, *agent);
    for (const std::string& place : {places.config, places.state, places.cache, places.data})
      redaction_.show_below(place);
    for (const char* place : {"/dev", "/proc", "/sys", "/usr", "/lib", "/etc/playfs", "/var/tmp"})
      redaction_.show_below(place);
    if (auto table = read_mount_table())
      for (const runtime::MountEntry& mount : *table)
        if (mount.type == kMountType) redaction_.mount_at(mount.mount_point);
  }

  /// Every value in the file, whatever its name: a damaged file has keys, too.
  void learn_keys(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const auto equals = line.find('=');
      if (equals == std::string::npos) continue;
      const bool is_handle = line.substr(0, equals).find("agent") != std::string::npos;
      const bool is_email = line.substr(0, equals).find("email") != std::string::npos;
      const auto begin = line.find_first_not_of(" \t\"'", equals + 1), end = line.find_last_not_of(" \t\r\"'");
      if (begin == std::string::npos || end < begin) continue;
      redaction_.hide(is_handle  ? Hidden::handle
                      : is_email ? Hidden::email
                                 : Hidden::key,
                      std::string_view(line).substr(begin, end - begin + 1));
    }
  }

  Json program() {
    utsname system{};
    uname(&system);
    JsonObject fields{{"version", PLAYFS_VERSION}, {"commit", nullptr}, {"system", Json()}};
    if (const std::string commit = build_commit(); !commit.empty()) fields.set("commit", commit);
    if (auto release = file_in_time("/etc/os-release"))
      if (const auto at = release->find("PRETTY_NAME=\""); at != std::string::npos)
        fields.set("system", release->substr(at + 13, release->find('"', at + 13) - at - 13));
    fields.append("kernel", std::string(system.sysname) + " " + system.release + " " + system.machine);
    fields.append("as_root", geteuid() == 0);
    fields.append("dev_fuse", access("/dev/fuse", R_OK | W_OK) == 0);
    fields.append("libraries", library_versions());
    return fields;
  }

  Json configuration() {
    JsonObject fields;
    for (const std::string& path : {context_.places.system_config, context_.places.config + "/config.toml"})
      if (access(path.c_str(), F_OK) == 0) fields.append(redaction_.text(path), lines_of(file_in_time(path)));
    JsonObject variables;
    for (const auto& [name, value] : context_.io.environment)
      if (name.starts_with("PLAYFS_") || name.starts_with("XDG_"))
        variables.append(name, redaction_.json(JsonObject{{variable_name(name), value}}).object()->begin()->value);
    fields.append("environment", std::move(variables));
    return fields;
  }
  /// PLAYFS_AGENT is what "agent" is elsewhere.
  static std::string variable_name(const std::string& name) {
    return to_lower(name.starts_with("PLAYFS_") ? std::string_view(name).substr(7) : std::string_view("path"));
  }

  Json mounts() {
    auto table = read_mount_table();
    if (!table) return unread(table.error());
    Json::Array list;
    for (const runtime::MountEntry& mount : *table) {
      const bool is_own = runtime::has_option(mount.super_options, "user_id=" + std::to_string(geteuid()));
      if (mount.type == kMountType && is_own) list.emplace_back(about(mount));
    }
    return list;
  }

  JsonObject about(const runtime::MountEntry& mount) {
    JsonObject fields{{"mount_point", redaction_.text(mount.mount_point)},
                      {"source", redaction_.text(mount.source)},
                      {"kernel_options", redaction_.text(mount.options + " " + mount.super_options)}};
    Json::Array options;
    if (auto record = record_of(context_.places, mount))
      for (const std::string& each : record->options) options.emplace_back(redaction_.text(each));
    fields.append("options", std::move(options));
    const std::string control = mount.mount_point + "/.playfs/";
    for (const char* name : {"status.json", "limits.json", "metrics", "errors.ndjson"}) {
      auto text = file_in_time(control + name);
      fields.append(name, shown(text));
      // Each of the others would take as long.
      if (!text && text.error().code == ErrorCode::timed_out) break;
    }
    return fields;
  }

  /// doctor itself, with its output kept.
  Json doctors_findings() {
    std::ostringstream out;
    runtime::Io io{context_.io.in,       out, out, context_.io.clock, context_.io.random, context_.io.environment,
                   context_.io.directory};
    Output output(io, true);
    CommandContext inner{io, output, context_.places, context_.settings};
    if (auto done = doctor(inner, {}); !done) return unread(done.error());
    auto document = wire::parse_json(out.str());
    if (!document) return unread(document.error());
    return redaction_.json(*document);
  }

  Json logs() {
    JsonObject fields;
    auto names = in_time(context_.places.state + "/log", [&]() -> Result<std::string> {
      std::string found;
      std::error_code problem;
      for (fs::directory_iterator each(context_.places.state + "/log", problem), end; !problem && each != end;
           each.increment(problem))
        found += each->path().string() + "\n";
      return found;
    });
    if (!names) return unread(names.error());
    std::istringstream list(*names);
    for (std::string path; std::getline(list, path);) fields.append(redaction_.text(path), lines_of(end_of(path)));
    return fields;
  }

  /// Files and bytes of the cache, of each work tree's stage and queue, and of playgrounds.
  Json sizes() {
    JsonObject fields{{"cache", size_of(context_.places.cache)}, {"playgrounds", size_of(context_.places.data)}};
    const std::string sites = context_.places.state + "/sites";
    auto folders = in_time(sites, [&]() -> Result<std::string> {
      std::string found;
      std::error_code problem;
      for (fs::recursive_directory_iterator each(sites, problem), end; !problem && each != end; each.increment(problem))
        if (each.depth() == kFolderDepth) {
          each.disable_recursion_pending();
          std::error_code unknown;
          if (each->is_directory(unknown)) found += each->path().string() + "\n";
        }
      return found;
    });
    if (!folders) return unread(folders.error());
    JsonObject stages;
    std::istringstream list(*folders);
    for (std::string path; std::getline(list, path);) stages.set(redaction_.text(path), size_of(path));
    fields.append("stages_and_queues", std::move(stages));
    return fields;
  }

  Json size_of(const std::string& directory) {
    auto sums = in_time(directory, [&]() -> Result<std::string> {
      std::uint64_t files = 0, bytes = 0;
      std::error_code problem, unknown;
      for (fs::recursive_directory_iterator each(directory, problem), end; !problem && each != end;
           each.increment(problem))
        if (each->is_regular_file(unknown) && !each->is_symlink(unknown)) {
          ++files;
          if (const auto size = each->file_size(unknown); !unknown) bytes += size;
        }
      return wire::to_text(Json(JsonObject{{"files", files}, {"bytes", bytes}}));
    });
    if (!sums) return unread(sums.error());
    return wire::parse_json(*sums).value_or(Json());
  }

  /// A control file: JSON, lines of JSON, or lines.
  Json shown(const Result<std::string>& text) {
    if (!text) return unread(text.error());
    if (auto whole = wire::parse_json(*text)) return redaction_.json(*whole);
    Json::Array array;
    std::istringstream list(*text);
    for (std::string line; std::getline(list, line);) {
      auto parsed = line.starts_with('{') ? wire::parse_json(line) : Result<Json>(Json(line));
      array.push_back(redaction_.json(parsed ? *parsed : Json(line)));
    }
    return array;
  }

  Json lines_of(const Result<std::string>& text) { return text ? redaction_.lines(*text) : unread(text.error()); }
  Json unread(const Error& why) { return JsonObject{{"unread", redaction_.text(why.message)}}; }

  static constexpr int kFolderDepth = 2;  ///< sites/SITE/work/PROJECT

  CommandContext& context_;
  Redaction& redaction_;
};

}  // namespace

JsonObject collect_report(CommandContext& context, Redaction& redaction) { return Collector(context, redaction).all(); }

}  // namespace playfs::app
