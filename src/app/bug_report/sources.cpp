#include "app/bug_report/sources.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <sstream>

#include "app/commands/commands.h"
#include "app/mount_record.h"
#include "base/fd.h"
#include "base/text.h"
#include "runtime/mount_options.h"
#include "wire/json.h"

namespace playfs::app {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kEndOfLog = 64 << 10;
constexpr std::size_t kMostLogs = 16;
constexpr std::size_t kLargestControlFile = 1 << 20;
constexpr int kOpenToRead = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

struct End {
  std::uint64_t bytes = 0;  ///< of the file
  std::string text;         ///< from the beginning of a line
};

/// Does not block on a FIFO, and reads no more than `most` bytes of a huge file.
Result<End> end_of(int directory, const std::string& name, std::size_t most, uid_t owner) {
  UniqueFd file(openat(directory, name.c_str(), kOpenToRead));
  if (!file) return fail(error_from_errno(errno, "read " + name));
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return fail(error_from_errno(errno, "stat " + name));
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::not_permitted, name + " is not a regular file");
  if (info.st_uid != owner) return fail(ErrorCode::not_permitted, name + " belongs to another user");
  const auto size = static_cast<std::uint64_t>(info.st_size);
  const std::uint64_t begin = size > most ? size - most : 0;
  PLAYFS_TRY(std::string text, read_at(file.get(), begin, most));
  if (begin > 0) text.erase(0, std::min(text.find('\n'), text.size() - 1) + 1);
  return End{size, std::move(text)};
}

Result<UniqueFd> open_directory(const std::string& path, int flags = O_NOFOLLOW) {
  UniqueFd directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags));
  if (!directory) return fail(error_from_errno(errno, "read " + path));
  return directory;
}

Result<std::vector<std::string>> names_in(const UniqueFd& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> list(fdopendir(dup(directory.get())), closedir);
  if (!list) return fail(error_from_errno(errno, "list"));
  std::vector<std::string> names;
  while (const dirent* each = readdir(list.get()))
    if (each->d_name[0] != '.') names.emplace_back(each->d_name);
  std::sort(names.begin(), names.end());
  return names;
}

Json value_of(const runtime::SettingName& setting, const std::string& text) {
  switch (setting.kind) {
    case runtime::SettingKind::seconds:
      if (auto time = runtime::parse_seconds(text)) return static_cast<double>(time->count()) / 1000;
      break;
    case runtime::SettingKind::size:
      if (auto size = runtime::parse_size(text)) return *size;
      break;
    case runtime::SettingKind::flag:
      if (auto flag = runtime::parse_flag(text)) return *flag;
      break;
    case runtime::SettingKind::text:
    case runtime::SettingKind::path:
    case runtime::SettingKind::instructions: break;
  }
  return text;
}

JsonObject values_in(const runtime::Settings& settings, runtime::Settings::Layer layer) {
  JsonObject values;
  for (const runtime::SettingName& setting : runtime::setting_names())
    if (auto text = settings.text_of(layer, setting.name))
      values.append(std::string(setting.name), value_of(setting, *text));
  return values;
}

/// As the mount understood them: their own text may have anything in it.
JsonObject options_of(const MountRecord& record) {
  runtime::MountOptions options;
  runtime::Settings settings;
  for (const std::string& list : record.options)
    if (auto parsed = runtime::parse_mount_options(list, options, settings); !parsed)
      return {{"unread", name_of(parsed.error().code)}};
  const auto number = [](const auto& value) { return value ? Json(std::uint64_t{*value}) : Json(); };
  return {{"of_one_project", options.project.has_value()},
          {"of_one_revision", options.revision.has_value()},
          {"read_only", options.read_only},
          {"allow_other", options.allow_other},
          {"safe_symlinks", options.safe_symlinks},
          {"no_exec", options.no_exec},
          {"synchronous", options.synchronous},
          {"nonempty", options.nonempty},
          {"uid", number(options.uid)},
          {"gid", number(options.gid)},
          {"umask", number(options.umask)},
          {"settings", values_in(settings, runtime::Settings::Layer::flag)}};
}

}  // namespace

JsonObject error_fields(const Error& error) { return {{"code", name_of(error.code)}, {"message", error.message}}; }

Result<Json> system_release() {
  // /etc/os-release is a link to it.
  PLAYFS_TRY(const UniqueFd directory, open_directory("/usr/lib"));
  PLAYFS_TRY(const End file, end_of(directory.get(), "os-release", kEndOfLog, 0));
  JsonObject found;
  std::istringstream lines(file.text);
  for (std::string line; std::getline(lines, line);) {
    const std::string value(trim(line.substr(line.find('=') + 1), "\"'"));
    if (line.starts_with("ID=")) found.set("distribution", value);
    if (line.starts_with("VERSION_ID=")) found.set("release", value);
  }
  return found;
}

Result<Json> settings_found(const runtime::Io& io, const runtime::Places& places) {
  // They may be links, as everywhere; a FIFO would block.
  for (const std::string& path : {places.system_config, places.config + "/config.toml"}) {
    struct stat info {};
    if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
      return fail(ErrorCode::not_permitted, path + " is not a regular file");
  }
  std::vector<std::string> warnings;
  PLAYFS_TRY(const runtime::Settings settings, runtime::load_settings(io, places, warnings));
  return JsonObject{{"system", values_in(settings, runtime::Settings::Layer::system)},
                    {"user", values_in(settings, runtime::Settings::Layer::user)},
                    {"environment_values", values_in(settings, runtime::Settings::Layer::environment)},
                    {"unknown", std::uint64_t{warnings.size()}}};
}

Result<Json> ends_of_logs(const runtime::Places& places) {
  auto directory = open_directory(places.state + "/log");
  if (!directory && directory.error().code == ErrorCode::not_found) return Json::Array();
  if (!directory) return fail(directory.error());
  PLAYFS_TRY(const std::vector<std::string> names, names_in(*directory));
  Json::Array logs;
  for (const std::string& name : names) {
    if (logs.size() == kMostLogs) break;
    JsonObject log{{"file", name}};
    if (auto end = end_of(directory->get(), name, kEndOfLog, geteuid())) {
      log.append("bytes", end->bytes);
      log.append("text", std::move(end->text));
    } else {
      log.append("error", error_fields(end.error()));
    }
    logs.emplace_back(std::move(log));
  }
  return logs;
}

Result<Json> mount_found(const runtime::Places& places, const runtime::MountEntry& mount) {
  JsonObject found;
  if (const auto record = record_of(places, mount)) found.append("options", options_of(*record));
  auto directory = open_directory(mount.mount_point + "/.playfs");
  if (!directory) {
    found.append("error", error_fields(directory.error()));
    return found;
  }
  // Who owns a mount's files is one of its options.
  struct stat info {};
  if (fstat(directory->get(), &info) != 0) return fail(error_from_errno(errno, "stat " + mount.mount_point));
  for (const char* name : {"status.json", "limits.json", "metrics", "errors.ndjson"}) {
    const std::size_t most = std::string_view(name) == "errors.ndjson" ? kEndOfLog : kLargestControlFile;
    auto end = end_of(directory->get(), name, most, info.st_uid);
    if (end) found.append(name, std::move(end->text));
    else found.append(name, JsonObject{{"error", error_fields(end.error())}});
  }
  return found;
}

Result<Json> doctors_document(const CommandContext& context) {
  std::ostringstream out;
  runtime::Io io{context.io.in,       out, out, context.io.clock, context.io.random, context.io.environment,
                 context.io.directory};
  Output output(io, true);
  CommandContext inner{io, output, context.places, context.settings};
  PLAYFS_TRY([[maybe_unused]] const ExitCode done, doctor(inner, {}));
  return wire::parse_json(out.str());
}

Result<Json> size_of(const std::string& directory) {
  std::uint64_t files = 0, bytes = 0;
  std::error_code problem, unknown;
  for (fs::recursive_directory_iterator each(directory, problem), end; !problem && each != end; each.increment(problem))
    if (each->is_regular_file(unknown) && !each->is_symlink(unknown)) {
      ++files;
      if (const auto size = each->file_size(unknown); !unknown) bytes += size;
    }
  return JsonObject{{"files", files}, {"bytes", bytes}};
}

Result<Json> sizes_of_stages(const runtime::Places& places) {
  constexpr int kFolderDepth = 2;  // sites/SITE/work/PROJECT
  Json::Array stages;
  std::error_code problem, unknown;
  for (fs::recursive_directory_iterator each(places.state + "/sites", problem), end; !problem && each != end;
       each.increment(problem)) {
    if (each.depth() < kFolderDepth) continue;
    each.disable_recursion_pending();
    if (!each->is_directory(unknown)) continue;
    PLAYFS_TRY(Json size, size_of(each->path().string()));
    stages.push_back(std::move(size));
  }
  return stages;
}

}  // namespace playfs::app
