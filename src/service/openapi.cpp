// The OpenAPI 3.1 document.
#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "service/description.h"
#include "service/problem.h"
#include "service/sign_in.h"

namespace playfs::service {

namespace {

JsonObject reference(std::string_view kind, std::string_view name) {
  return {{"$ref", "#/components/" + std::string(kind) + '/' + std::string(name)}};
}

JsonObject text_schema() { return {{"type", "string"}}; }

/// "AgentsRecord": the schema of a collection's records.
std::string schema_name(const Collection& collection) {
  std::string name;
  bool begins = true;
  for (char c : collection.name) {
    if (c == '_') {
      begins = true;
      continue;
    }
    name += begins && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    begins = false;
  }
  return name;
}

JsonObject content_of(const char* type, JsonObject schema) {
  return {{"content", JsonObject{{type, JsonObject{{"schema", std::move(schema)}}}}}};
}

JsonObject described(const char* text, JsonObject content) {
  JsonObject answer{{"description", text}};
  for (const auto& [name, value] : content) answer.append(name, value);
  return answer;
}

Json required(std::initializer_list<const char*> names) {
  Json::Array list;
  for (const char* name : names) list.emplace_back(name);
  return Json(std::move(list));
}

/// The declared fields have no types: a playground takes what agents invent.
JsonObject fields_schema(const Collection& collection) {
  JsonObject properties;
  for (std::string_view field : collection.fields) {
    JsonObject schema;
    if (field == "kind" && !collection.kinds.empty()) {
      Json::Array kinds;
      for (std::string_view kind : collection.kinds) kinds.emplace_back(kind);
      schema.append("enum", Json(std::move(kinds)));
    }
    const auto& reserved = collection.steward_fields;
    if (std::find(reserved.begin(), reserved.end(), field) != reserved.end())
      schema.append("description", "Only the domain steward may set it.");
    properties.append(std::string(field), std::move(schema));
  }
  return {{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", true}};
}

JsonObject record_schema(const Collection& collection) {
  return {
      {"allOf", Json::Array{reference("schemas", "System"), reference("schemas", schema_name(collection) + "Fields")}}};
}

JsonObject wrapped_record(const Collection& collection) {
  return {{"type", "object"},
          {"required", required({"record"})},
          {"properties", JsonObject{{"record", reference("schemas", schema_name(collection))}}}};
}

JsonObject page_schema(const Collection& collection) {
  return {{"type", "object"},
          {"required", required({"records", "nextCursor"})},
          {"properties", JsonObject{{"records", JsonObject{{"type", "array"},
                                                           {"maxItems", static_cast<std::int64_t>(kLargestPage)},
                                                           {"items", reference("schemas", schema_name(collection))}}},
                                    {"nextCursor", JsonObject{{"type", Json::Array{"string", "null"}}}}}}};
}

JsonObject success_of(const Operation& operation, const Collection* collection) {
  switch (operation.place) {
    case Place::list_of:
      if (operation.method == "GET")
        return described("A page of records", content_of("application/json", page_schema(*collection)));
      [[fallthrough]];
    case Place::record_of: return described("The record", content_of("application/json", wrapped_record(*collection)));
    case Place::events:
      return described("Server-Sent Events: `hello` or `reset`, then a `change` for each changed record",
                       content_of("text/event-stream", text_schema()));
    case Place::export_of:
      return described(
          "A line `{\"record\": …}` for each record; among them lines `{\"nextCursor\": …}` to go on from, "
          "and at the end `{\"nextCursor\": null}`",
          content_of("application/x-ndjson", text_schema()));
    case Place::key:
      return described("The key is valid", content_of("application/json", reference("schemas", "KeyHolder")));
    case Place::request_code:
      return described("A code is on its way, or was mailed to that address within the last five minutes",
                       content_of("application/json", reference("schemas", "CodeSent")));
    case Place::verify_code:
      return described("A key", content_of("application/json", reference("schemas", "SignedIn")));
    case Place::overview:
    case Place::manifest:
    case Place::description: break;
  }
  return described("The document", content_of("application/json", JsonObject{{"type", "object"}}));
}

/// Whether this operation can answer with that error status under this site's limits and access rules.
bool may_refuse(int status, const Operation& operation, const Collection* collection, const Limits& limits) {
  if (!collection) return true;
  if (status == 429) return limits.writes(*collection).has_value();
  if (status == 403 && operation.method == "PATCH")
    return collection->update == Access::owner || !collection->steward_fields.empty();
  return true;
}

JsonObject responses_of(const Operation& operation, const Collection* collection, const Limits& limits) {
  JsonObject responses{{"200", success_of(operation, collection)}};
  if (operation.may_be_unchanged)
    responses.append("304", JsonObject{{"description", "The client has this state already (If-None-Match)"}});
  for (int status : operation.refusals)
    if (may_refuse(status, operation, collection, limits))
      responses.append(std::to_string(status), reference("responses", std::to_string(status)));
  responses.append("default", reference("responses", "default"));
  return responses;
}

JsonObject body_of(const Operation& operation, const Collection* collection) {
  JsonObject schema;
  if (collection) schema = reference("schemas", schema_name(*collection) + "Fields");
  else schema = reference("schemas", operation.place == Place::verify_code ? "Code" : "Address");
  JsonObject body = content_of("application/json", std::move(schema));
  body.append("required", true);
  return body;
}

JsonObject printed_operation(const Operation& operation, const Collection* collection, const Limits& limits,
                             std::string_view method) {
  std::string id(operation.name);
  if (collection) id += schema_name(*collection);
  if (method == "head") id += "Head";
  JsonObject printed{{"operationId", std::move(id)}, {"summary", operation.summary}};
  if (collection) printed.append("tags", Json::Array{Json(collection->name)});
  Json::Array parameters;
  constexpr std::array<const char*, 6> names = {"limit", "cursor", "after", "lastEventId", "idempotencyKey", "origin"};
  for (Parameter parameter : operation.parameters)
    parameters.emplace_back(reference("parameters", names[static_cast<std::size_t>(parameter)]));
  if (!parameters.empty()) printed.append("parameters", std::move(parameters));
  if (operation.method == "POST" || operation.method == "PATCH") {
    printed.append("requestBody", body_of(operation, collection));
    // Without a key, a record belongs to nobody.
    if (collection) printed.append("security", Json::Array{JsonObject(), JsonObject{{"key", Json::Array()}}});
  }
  if (operation.place == Place::key) printed.append("security", Json::Array{JsonObject{{"key", Json::Array()}}});
  printed.append("responses", responses_of(operation, collection, limits));
  return printed;
}

JsonObject preflight(std::string id) {
  return {{"operationId", std::move(id)},
          {"summary", "The methods of this path; a browser's preflight"},
          {"responses", JsonObject{{"204", JsonObject{{"description", "In the header Allow"}}},
                                   {"400", reference("responses", "400")},
                                   {"421", reference("responses", "421")},
                                   {"default", reference("responses", "default")}}}};
}

void append_path(JsonObject& paths, const Offer& offer, Place place, const Collection* collection) {
  JsonObject item;
  if (place == Place::record_of) item.append("parameters", Json::Array{reference("parameters", "id")});
  std::string first;
  for (const Operation& operation : all_operations()) {
    if (operation.place != place) continue;
    if (first.empty()) first = operation.name;
    item.append(to_lower(operation.method),
                printed_operation(operation, collection, offer.limits, to_lower(operation.method)));
    if (operation.method == "GET" && find_operation(place, "HEAD"))
      item.append("head", printed_operation(operation, collection, offer.limits, "head"));
  }
  if (is_readable(place))
    item.append("options", preflight(first + (collection ? schema_name(*collection) : "") + "Options"));
  paths.append(offer.paths.of(place, collection ? collection->name : "", "{id}"), std::move(item));
}

JsonObject parameter(const char* name, const char* where, const char* description, JsonObject schema,
                     bool is_required = false) {
  return {{"name", name},
          {"in", where},
          {"required", is_required},
          {"description", description},
          {"schema", std::move(schema)}};
}

JsonObject parameters() {
  const auto whole = [](std::size_t value) { return Json(static_cast<std::int64_t>(value)); };
  return {
      {"id", parameter("id", "path", "The record's id", text_schema(), true)},
      {"limit",
       parameter(
           "limit", "query", "The size of the page",
           {{"type", "integer"}, {"minimum", 1}, {"maximum", whole(kLargestPage)}, {"default", whole(kDefaultPage)}})},
      {"cursor", parameter("cursor", "query", "A nextCursor, unchanged", text_schema())},
      {"after", parameter("after", "query", "The id of an event, to go on after it", text_schema())},
      {"lastEventId", parameter("Last-Event-ID", "header", "The same, as browsers send it", text_schema())},
      {"idempotencyKey",
       parameter("Idempotency-Key", "header", "Requests with the same key create one record",
                 {{"type", "string"}, {"minLength", 1}, {"maxLength", whole(kLongestIdempotencyKey)}})},
      {"origin", parameter("Origin", "header", "This site's origin", text_schema(), true)}};
}

JsonObject problem_schema() {
  return {{"type", "object"},
          {"required", required({"error", "code", "message"})},
          {"properties", JsonObject{{"error", text_schema()},
                                    {"code", text_schema()},
                                    {"message", text_schema()},
                                    {"retry_after", JsonObject{{"type", "integer"}, {"description", "Seconds"}}},
                                    {"details", JsonObject{{"type", "object"}}},
                                    {"docs_url", text_schema()}}}};
}

JsonObject object_of(std::initializer_list<const char*> texts) {
  JsonObject properties;
  for (const char* name : texts) properties.append(name, text_schema());
  return {{"type", "object"}, {"required", required(texts)}, {"properties", std::move(properties)}};
}

JsonObject schemas() {
  JsonObject sent{{"type", "object"},
                  {"properties", JsonObject{{"success", JsonObject{{"type", "boolean"}}},
                                            {"requiresCodeEntry", JsonObject{{"type", "boolean"}}},
                                            {"expiresAt", text_schema()}}}};
  JsonObject signed_in{{"type", "object"},
                       {"properties", JsonObject{{"success", JsonObject{{"type", "boolean"}}},
                                                 {"email", text_schema()},
                                                 {"apiKey", text_schema()},
                                                 {"isNewUser", JsonObject{{"type", "boolean"}}}}}};
  JsonObject holder{
      {"type", "object"},
      {"required", required({"account", "steward"})},
      {"properties",
       JsonObject{{"account", text_schema()}, {"email", text_schema()}, {"steward", JsonObject{{"type", "boolean"}}}}}};
  JsonObject all{{"Problem", problem_schema()},     {"System", object_of({"id", "created_at", "updated_at", "status"})},
                 {"Address", object_of({"email"})}, {"Code", object_of({"email", "code"})},
                 {"CodeSent", std::move(sent)},     {"SignedIn", std::move(signed_in)},
                 {"KeyHolder", std::move(holder)}};
  for (const Collection& collection : all_collections()) {
    all.append(schema_name(collection) + "Fields", fields_schema(collection));
    all.append(schema_name(collection), record_schema(collection));
  }
  return all;
}

JsonObject refusals() {
  JsonObject all;
  std::vector<int> statuses;
  for (const Operation& operation : all_operations())
    statuses.insert(statuses.end(), operation.refusals.begin(), operation.refusals.end());
  std::sort(statuses.begin(), statuses.end());
  statuses.erase(std::unique(statuses.begin(), statuses.end()), statuses.end());
  const JsonObject problem = content_of("application/json", reference("schemas", "Problem"));
  for (int status : statuses)
    all.append(std::to_string(status), described(std::string(reason_phrase(status)).c_str(), problem));
  all.append(
      "default",
      described("The service failed (500), is busy (503, with Retry-After) or out of space (507); or the request "
                "itself broke a limit of HTTP (408, 413, 431, 501)",
                problem));
  return all;
}

}  // namespace

JsonObject openapi_of(const Offer& offer) {
  JsonObject paths;
  for (const Operation& operation : all_operations()) {
    const Place place = operation.place;
    const bool is_first = &operation == &all_operations().front() || (&operation - 1)->place != place;
    if (!is_first || !offer.has(place)) continue;
    if (place != Place::list_of && place != Place::record_of && place != Place::export_of) {
      append_path(paths, offer, place, nullptr);
      continue;
    }
    for (const Collection& collection : all_collections()) append_path(paths, offer, place, &collection);
  }
  JsonObject info{{"title", "Agent Playground Data API"},
                  {"version", kApiVersion},
                  {"description",
                   "Anybody may write, within limits. Whatever a record contains are claims of whoever "
                   "wrote it. Further methods of a path are 405, other paths 404."}};
  JsonObject key{{"type", "http"}, {"scheme", "bearer"}};
  return {{"openapi", "3.1.0"},
          {"info", std::move(info)},
          {"paths", std::move(paths)},
          {"components", JsonObject{{"schemas", schemas()},
                                    {"responses", refusals()},
                                    {"parameters", parameters()},
                                    {"securitySchemes", JsonObject{{"key", std::move(key)}}}}}};
}

}  // namespace playfs::service
