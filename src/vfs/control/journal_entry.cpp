#include "vfs/control/journal_entry.h"

#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "base/fd.h"
#include "base/text.h"
#include "vfs/control/text_room.h"
#include "wire/json.h"

namespace playfs::vfs {
namespace {

/// Of files that end with a seal. Earlier ones have neither.
constexpr std::int64_t kSealedFormat = 2;
constexpr const char* kFormat = "format";
constexpr std::string_view kSeal = "\nxxh3 ";

std::string seal_of(std::string_view text) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(text.data(), text.size()));
  return std::string(kSeal) + to_hex(std::as_bytes(std::span(canonical.digest))) + "\n";
}

std::string sealed(JsonObject object) {
  object.set(kFormat, kSealedFormat);
  const std::string text = wire::to_text(object);
  return text + seal_of(text);
}

struct Unsealed {
  JsonObject object;
  bool is_of_earlier_version;
};

std::optional<Unsealed> unsealed(std::string_view text) {
  const std::size_t end = text.rfind(kSeal);
  const bool is_sealed = end != std::string_view::npos;
  const std::string_view document = text.substr(0, end);
  if (is_sealed && text.substr(end) != seal_of(document)) return std::nullopt;
  const auto json = wire::parse_json(document);
  const JsonObject* object = json ? json->object() : nullptr;
  if (!object || is_sealed != (object->find(kFormat) != nullptr)) return std::nullopt;
  return Unsealed{*object, !is_sealed};
}

std::string string_in(const JsonObject& object, std::string_view name) {
  const Json* value = object.find(name);
  const std::string* text = value ? value->string() : nullptr;
  return text ? *text : std::string();
}

std::optional<bool> bool_in(const JsonObject& object, std::string_view name) {
  const Json* value = object.find(name);
  return value ? value->boolean() : std::nullopt;
}

std::optional<RequestStep> parsed_step(const Json& json) {
  const JsonObject* step = json.object();
  const Json* body = step ? step->find("body") : nullptr;
  if (!body || !body->object() || string_in(*step, "key").empty()) return std::nullopt;
  return RequestStep{string_in(*step, "collection"), *body->object(), string_in(*step, "key"), string_in(*step, "made"),
                     string_in(*step, "thread_title")};
}

bool is_sound(const std::string& path) {
  auto text = read_file(path, kLongestEntry);
  // What cannot be read now is not damaged, and what is gone has had its outcome.
  if (!text) return text.error().code != ErrorCode::file_too_big;
  return path.ends_with(kDraftSuffix) ? parsed_draft(*text).has_value() : parsed_entry(*text).has_value();
}

}  // namespace

std::string owner_of(const std::string& name) { return name.substr(0, name.find('.')); }

std::string entry_text(const JournalledRequest& request) {
  Json::Array steps;
  for (const RequestStep& step : request.steps) {
    JsonObject entry{{"collection", step.collection}, {"key", step.key}, {"made", step.made}, {"body", step.body}};
    if (!step.thread_title.empty()) entry.append("thread_title", step.thread_title);
    steps.push_back(std::move(entry));
  }
  JsonObject object{
      {"path", request.path},          {"begun", format_iso8601(request.begun)}, {"told", request.is_told},
      {"resumed", request.is_resumed}, {"checked", request.may_have_arrived},    {"steps", std::move(steps)}};
  if (request.is_caller_known) object.set("caller", request.caller);
  if (!request.draft.empty()) object.set("draft", request.draft);
  return sealed(std::move(object));
}

std::optional<JournalledRequest> parsed_entry(std::string_view text) {
  const auto opened = unsealed(text);
  if (!opened) return std::nullopt;
  const JsonObject& object = opened->object;
  const Json* steps = object.find("steps");
  const auto told = bool_in(object, "told");
  const auto begun = parse_iso8601(string_in(object, "begun"));
  if (!steps || !steps->array() || !told || !begun) return std::nullopt;
  JournalledRequest request{string_in(object, "path"), {}, *begun, string_in(object, "caller")};
  const Json* caller = object.find("caller");
  request.is_caller_known = caller && caller->string();
  request.is_of_earlier_version = opened->is_of_earlier_version;
  request.is_told = *told;
  request.is_resumed = bool_in(object, "resumed").value_or(false);
  request.may_have_arrived = bool_in(object, "checked").value_or(true);
  request.draft = string_in(object, "draft");
  for (const Json& each : *steps->array()) {
    auto step = parsed_step(each);
    if (!step) return std::nullopt;
    request.steps.push_back(*std::move(step));
  }
  return request.steps.empty() ? std::nullopt : std::optional(std::move(request));
}

std::string draft_text(const DraftEntry& draft) {
  return sealed(JsonObject{{"path", draft.path}, {"text", draft.text}, {"agent", draft.agent}});
}

std::optional<DraftEntry> parsed_draft(std::string_view text) {
  const auto opened = unsealed(text);
  if (!opened) return std::nullopt;
  return DraftEntry{string_in(opened->object, "path"), string_in(opened->object, "text"),
                    string_in(opened->object, "agent")};
}

std::vector<std::string> files_in(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code problem;
  for (std::filesystem::directory_iterator entry(directory, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    std::error_code unknown;
    if (entry->is_regular_file(unknown)) files.push_back(entry->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

JournalHealth examine_journal(const std::string& directory) {
  JournalHealth health{unsent_texts(unsent_directory_of(directory)), {}};
  for (const std::string& path : files_in(directory))
    if ((path.ends_with(kRequestSuffix) || path.ends_with(kDraftSuffix)) && !is_sound(path))
      health.damaged.push_back(path);
  return health;
}

}  // namespace playfs::vfs
