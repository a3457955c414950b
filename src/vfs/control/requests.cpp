#include "vfs/control/requests.h"

#include <algorithm>

#include "vfs/attempt_fetches.h"
#include "vfs/control/control_text.h"
#include "vfs/control/request_sending.h"
#include "vfs/mount.h"
#include "wire/json.h"

namespace playfs::vfs {
namespace {

constexpr const char* kDryRun = "dry_run";

}  // namespace

std::string help_document(const Form& form) {
  JsonObject fields;
  for (const auto& field : form.fields) fields.set(field.name, field.meaning);
  if (form.others) fields.set("…", "any other field is kept with the record");
  if (!fields.find(kDryRun)) fields.set(kDryRun, "true: say what would be sent; send nothing");
  auto example = wire::parse_json(form.example);
  JsonObject help{{"schema_version", kSchemaVersion},
                  {"outcome", nullptr},
                  {"write", std::string("plain text for \"") + form.plain + "\", or a JSON object"},
                  {"fields", std::move(fields)},
                  {"example", example ? std::move(*example) : Json()},
                  {"then", "all text written through one open is one request; read this file for its outcome"}};
  if (form.corrected)
    help.append("public",
                std::string("everybody can read what is sent, and nobody can withdraw it; ") + form.corrected);
  return wire::to_pretty_text(help);
}

Status check_fields(const JsonObject& body, const Form& form) {
  if (form.others) return {};
  std::string known;
  for (const auto& field : form.fields) known += (known.empty() ? "" : ", ") + std::string(field.name);
  for (const auto& [name, value] : body) {
    bool is_known = std::any_of(form.fields.begin(), form.fields.end(),
                                [&, &name = name](const Form::Field& field) { return name == field.name; });
    if (!is_known && name != kDryRun)
      return fail(ErrorCode::invalid_argument, "there is no field \"" + name + "\"", "the fields are " + known);
  }
  return {};
}

Result<JsonObject> request_body(const std::string& text, const Form& form) {
  const std::string plain = form.plain;
  std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos)
    return fail(ErrorCode::invalid_argument, "the request is empty",
                "write text, or JSON with at least \"" + plain + "\"");
  if (text[begin] == '{') {
    auto json = wire::parse_json(text);
    if (!json) return fail(ErrorCode::invalid_argument, "the request is not valid JSON: " + json.error().message);
    JsonObject body = *json->object();
    PLAYFS_CHECK(check_fields(body, form));
    if (!body.find(plain)) return fail(ErrorCode::invalid_argument, "the request has no \"" + plain + "\"");
    return body;
  }
  std::string_view value = text;
  if (value.ends_with('\n')) value.remove_suffix(1);
  return JsonObject{{plain, value}};
}

Result<bool> take_dry_run(JsonObject& body) {
  const Json* value = body.find(kDryRun);
  if (!value) return false;
  const auto is_dry = value->boolean();
  if (!is_dry) return fail(ErrorCode::invalid_argument, "\"dry_run\" must be true or false");
  body.erase(kDryRun);
  return *is_dry;
}

Status make_list(JsonObject& body, std::string_view name) {
  Json* value = body.find(name);
  if (!value) return {};
  if (const std::string* text = value->string())
    *value = text->empty() ? Json(Json::Array()) : Json(Json::Array{Json(*text)});
  const Json::Array* list = value->array();
  if (!list || !std::all_of(list->begin(), list->end(), [](const Json& each) { return each.string() != nullptr; }))
    return fail(ErrorCode::invalid_argument, "\"" + std::string(name) + "\" must be a text or a list of texts");
  return {};
}

namespace {

/// A dry run's answer: what would be sent, in order.
std::string plan_document(std::span<const RequestStep> steps) {
  Json::Array requests;
  for (const RequestStep& step : steps)
    requests.push_back(JsonObject{{"method", "POST"}, {"collection", step.collection}, {"body", step.body}});
  return wire::to_pretty_text(
      JsonObject{{"schema_version", kSchemaVersion}, {"outcome", "planned"}, {"would_send", std::move(requests)}});
}

}  // namespace

Async<RequestAnswer> create_record(Mount& mount, OperationPtr op, std::string path, std::string collection,
                                   JsonObject body, std::string thread_title) {
  PLAYFS_CO_TRY(const bool is_dry, take_dry_run(body));
  std::vector<RequestStep> steps{{collection, std::move(body), {}, {}, std::move(thread_title)}};
  if (is_dry) {
    PLAYFS_AWAIT_CHECK(check_step(mount, op, steps.front()));
    co_return RequestAnswer{plan_document(steps)};
  }
  PLAYFS_AWAIT(const Sent sent, send_once(mount, op, std::move(path), std::move(steps)));
  PLAYFS_AWAIT_CHECK(until_listings_are_dropped(mount, op, collection, "told"));
  co_return RequestAnswer{shown_answer(mount, sent)};
}

Async<RequestAnswer> create_thread(Mount& mount, OperationPtr op, std::string path, JsonObject thread,
                                   JsonObject message) {
  PLAYFS_CO_TRY(const bool is_dry, take_dry_run(thread));
  std::vector<RequestStep> steps{{"threads", std::move(thread)}, {"messages", std::move(message)}};
  if (is_dry) co_return RequestAnswer{plan_document(steps)};
  PLAYFS_AWAIT(const Sent sent, send_once(mount, op, std::move(path), std::move(steps)));
  for (const char* collection : {"threads", "messages"})
    PLAYFS_AWAIT_CHECK(until_listings_are_dropped(mount, op, collection, std::string("told ") + collection));
  co_return RequestAnswer{shown_answer(mount, sent)};
}

void set_default_agent(const Mount& mount, JsonObject& body) {
  if (!body.find("agent") && !mount.options().agent.empty()) body.set("agent", mount.options().agent);
}

}  // namespace playfs::vfs
