#include "app/bug_report/collected.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <sstream>
#include <utility>

#include "app/bug_report/libraries.h"
#include "app/bug_report/shown_words.h"
#include "app/bug_report/sources.h"
#include "app/bug_report/without_keys.h"
#include "app/json_fields.h"
#include "app/mounted.h"
#include "base/text.h"
#include "runtime/credentials.h"
#include "runtime/descriptors.h"
#include "runtime/limited_child.h"
#include "wire/json.h"

namespace playfs::app {

namespace {

using std::chrono::seconds;

constexpr seconds kWholePatience{20};
constexpr seconds kChildsPatience{5};
constexpr seconds kDoctorsPatience{12};  ///< it has children of its own, which look at mounts
constexpr wire::JsonLimits kAnswer{.document_size = 64 << 20, .depth = 70, .string_size = 8 << 20};

Json lines_of(std::string_view text) {
  Json::Array lines;
  std::istringstream list{std::string(text)};
  for (std::string line; std::getline(list, line);) lines.emplace_back(std::move(line));
  return lines;
}

/// `playfs_operations_total{operation="read"} 7`
Json metrics_in(const std::string& text) {
  Json::Array metrics;
  std::istringstream list(text);
  for (std::string line; std::getline(list, line);) {
    if (line.starts_with('#')) continue;
    const std::string name = line.substr(0, line.find_first_of(" {"));
    JsonObject metric{{"metric", name}};
    if (const auto quote = line.find('"'); quote != std::string::npos)
      metric.append("operation", line.substr(quote + 1, line.find('"', quote + 1) - quote - 1));
    auto value = wire::parse_json(line.substr(line.rfind(' ') + 1));
    metric.append("value", value ? *value : Json());
    metrics.emplace_back(std::move(metric));
  }
  return metrics;
}

/// A line that is not JSON, such as one that is cut off, is kept as a text.
Json entries_in(const std::string& text) {
  Json::Array entries;
  std::istringstream list(text);
  for (std::string line; std::getline(list, line);) entries.push_back(wire::parse_json(line).value_or(Json(line)));
  return entries;
}

/// What the kernel knows of the mount's options. Numbers are kept as such, so that they are shown.
Json kernel_options(const runtime::MountEntry& mount) {
  Json::Array options;
  std::istringstream list(mount.options + "," + mount.super_options);
  for (std::string option; std::getline(list, option, ',');) {
    const auto equals = option.find('=');
    JsonObject fields{{"kernel_option", option.substr(0, equals)}};
    if (equals != std::string::npos) {
      const auto value = wire::parse_json(option.substr(equals + 1));
      fields.append("value", value && value->integer() ? *value : Json(option.substr(equals + 1)));
    }
    options.emplace_back(std::move(fields));
  }
  return options;
}

const char* source_kind(std::string_view source) {
  if (source.starts_with("local:")) return "embedded";
  const std::string_view host = source.substr(std::min(source.find("://") + 3, source.size()));
  for (const std::string_view here : {"localhost", "127.", "[::1]"})
    if (host.starts_with(here)) return "local";
  return "site";
}

/// "6.1.0-28": what follows may be a name that its owner gave the kernel.
std::string numbers_of(std::string_view release) {
  return std::string(trim(release.substr(0, release.find_first_not_of("0123456789.-")), ".-"));
}

/// Others may be named by their owner.
bool is_known_variable(std::string_view name) {
  static constexpr std::string_view kOthers[] = {"PLAYFS_MOUNT",    "PLAYFS_PAGER",  "XDG_CACHE_HOME",
                                                 "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
                                                 "XDG_STATE_HOME"};
  const auto settings = runtime::setting_names();
  return std::find(std::begin(kOthers), std::end(kOthers), name) != std::end(kOthers) ||
         std::any_of(settings.begin(), settings.end(), [&](const auto& each) { return each.variable == name; });
}

class Collector {
 public:
  explicit Collector(const CommandContext& context) : context_(context) {}

  Result<WithoutKeys> keys() {
    PLAYFS_TRY(const Json kept, in_time([&]() -> Result<Json> {
                 PLAYFS_TRY(const std::vector<std::string> secrets, runtime::kept_secrets(context_.places));
                 return Json::Array(secrets.begin(), secrets.end());
               }));
    std::vector<std::string> values;
    for (const Json& each : *kept.array()) values.push_back(*each.string());
    return WithoutKeys(values);
  }

  CollectedReport all() {
    JsonObject facts{{"program", program()}, {"configuration", configuration()}, {"logs", logs()}, {"sizes", sizes()}};
    facts.append("doctor", doctors_findings());
    facts.append("mounts", mounts());  // last, for these may take the time of all others
    texts_.append("unread", std::move(unread_));
    return {std::move(facts), std::move(texts_)};
  }

 private:
  /// What a child finds; fails if it does, or if it is not back in time.
  Result<Json> in_time(const std::function<Result<Json>()>& act, seconds most = kChildsPatience) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end_ - std::chrono::steady_clock::now());
    if (left.count() <= 0) return fail(ErrorCode::timed_out, "no time was left to look at it");
    runtime::LimitedChild child(
        [&] {
          runtime::hold_standard_streams();
          const auto found = act();
          JsonObject answer;
          if (found) answer.set("found", *found);
          else answer.set("error", failure(found.error()));
          return wire::to_text(answer);
        },
        std::min<std::chrono::milliseconds>(left, most));
    const auto answer = child.answer();
    if (!answer) return fail(ErrorCode::timed_out, "no answer in time");
    const auto document = wire::parse_json(*answer, kAnswer);
    const JsonObject* fields = document ? document->object() : nullptr;
    if (fields == nullptr) return fail(ErrorCode::internal, "no answer: the process that looked at it has ended");
    if (const Json* error = fields->find("error")) return fail(error_in(*error->object()));
    return *fields->find("found");
  }

  static JsonObject failure(const Error& error) {
    JsonObject fields = error_fields(error);
    fields.append("hint", error.hint);
    return fields;
  }
  static Error error_in(const JsonObject& fields) {
    return {.code = code_named(text_of(fields, "code")),
            .message = text_of(fields, "message"),
            .hint = text_of(fields, "hint")};
  }

  Json unread(const std::string& what, const Error& why) {
    unread_.emplace_back(what + ": " + why.message);
    return JsonObject{{"unread", name_of(why.code)}};
  }
  Json found_or_unread(const std::string& what, const Result<Json>& found) {
    return found ? *found : unread(what, found.error());
  }

  Json program() {
    utsname system{};
    uname(&system);
    JsonObject fields{{"version", PLAYFS_VERSION}, {"commit", nullptr}};
    if (const std::string commit = build_commit(); !commit.empty()) fields.set("commit", commit);
    fields.append("system", found_or_unread("the system's release", in_time(system_release)));
    fields.append("kernel", numbers_of(system.release));
    fields.append("machine", std::string(system.machine));
    fields.append("as_root", geteuid() == 0);
    fields.append("dev_fuse", access("/dev/fuse", R_OK | W_OK) == 0);
    // In a child, since libraries read files of their own.
    fields.append("libraries",
                  found_or_unread("libraries", in_time([]() -> Result<Json> { return library_versions(); })));
    return fields;
  }

  Json configuration() {
    Json::Array variables;
    std::uint64_t others = 0;
    for (const auto& [name, value] : context_.io.environment) {
      if (is_known_variable(name)) variables.emplace_back(name);
      else if (name.starts_with("PLAYFS_")) ++others;
    }
    auto settings = in_time([&] { return settings_found(context_.io, context_.places); });
    return JsonObject{{"settings", found_or_unread("settings", settings)},
                      {"environment", std::move(variables)},
                      {"unknown_variables", others}};
  }

  Json logs() {
    const auto found = in_time([&] { return ends_of_logs(context_.places); });
    if (!found) return unread("logs", found.error());
    Json::Array shown, texts;
    for (const Json& each : *found->array()) {
      const JsonObject& log = *each.object();
      const std::string file = text_of(log, "file");
      if (const Json* error = log.find("error")) {
        shown.push_back(unread(file, error_in(*error->object())));
      } else {
        shown.emplace_back(JsonObject{{"bytes", *log.find("bytes")}});
        texts.emplace_back(JsonObject{{"file", file}, {"lines", lines_of(text_of(log, "text"))}});
      }
    }
    texts_.append("logs", std::move(texts));
    return shown;
  }

  Json sizes() {
    const auto of = [&](const std::string& what, const std::string& directory) {
      return found_or_unread(what, in_time([&] { return size_of(directory); }));
    };
    return JsonObject{
        {"cache", of("cache", context_.places.cache)},
        {"playgrounds", of("playgrounds", context_.places.data)},
        {"stages_and_queues", found_or_unread("stages", in_time([&] { return sizes_of_stages(context_.places); }))}};
  }

  Json doctors_findings() {
    const auto found = in_time([&] { return doctors_document(context_); }, kDoctorsPatience);
    if (found) texts_.append("doctor", *found);
    return found_or_unread("doctor", found);
  }

  Json mounts() {
    const auto table = read_mount_table();
    if (!table) return unread("mounts", table.error());
    Json::Array list, texts;
    for (const runtime::MountEntry& mount : *table) {
      if (mount.type != kMountType || !runtime::has_option(mount.super_options, "user_id=" + std::to_string(geteuid())))
        continue;
      JsonObject words{
          {"mount", std::uint64_t{list.size() + 1}}, {"mount_point", mount.mount_point}, {"source", mount.source}};
      JsonObject fields = words;
      fields.append("source_kind", source_kind(mount.source));
      fields.append("kernel_options", kernel_options(mount));
      add_findings(mount, fields, words);
      list.emplace_back(std::move(fields));
      texts.emplace_back(std::move(words));
    }
    texts_.append("mounts", std::move(texts));
    return list;
  }

  void add_findings(const runtime::MountEntry& mount, JsonObject& fields, JsonObject& words) {
    const auto found = in_time([&] { return mount_found(context_.places, mount); });
    if (!found) return fields.append("control_files", unread(mount.mount_point, found.error()));
    const JsonObject& parts = *found->object();
    if (const Json* error = parts.find("error"))
      fields.append("control_files", unread(mount.mount_point, error_in(*error->object())));
    for (const auto& [name, value] : parts) {
      const std::string* text = value.string();
      if (name == "options") fields.append(name, value);
      if (name == "error" || name == "options") continue;
      const std::string section = name.substr(0, name.find('.'));
      if (text == nullptr) {
        fields.append(section, unread(mount.mount_point + "/.playfs/" + name,
                                      error_in(*value.object()->find("error")->object())));
        continue;
      }
      Json shown = name == "metrics"         ? metrics_in(*text)
                   : name == "errors.ndjson" ? entries_in(*text)
                                             : wire::parse_json(*text).value_or(Json());
      if (name == "status.json" || name == "errors.ndjson") words.append(section, shown);
      fields.append(section, std::move(shown));
    }
  }

  const CommandContext& context_;
  const std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + kWholePatience;
  JsonObject texts_;
  Json::Array unread_;
};

}  // namespace

Result<CollectedReport> collect_report(const CommandContext& context, bool with_texts) {
  Collector collector(context);
  std::optional<WithoutKeys> keys;
  if (with_texts) {
    auto read = collector.keys();
    if (!read) {
      Error why = read.error().while_doing("--logs is refused, for the keys to take out cannot be read");
      if (why.hint.empty()) why.hint = "playfs bugreport";
      return fail(std::move(why));
    }
    keys = *std::move(read);
  }
  CollectedReport report = collector.all();
  report.facts = *ShownWords().of(report.facts).object();
  report.texts = keys ? *keys->json(report.texts).object() : JsonObject();
  return report;
}

}  // namespace playfs::app
