#include "wire/records.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "wire/ancestry.h"
#include "wire/ids.h"

namespace playfs::wire {

namespace {

constexpr std::size_t kMaxCursorLength = 4096;

/// Declared fields with these names must not be written flat, where they would pass for system fields.
constexpr std::array<std::string_view, 7> kSystemNames = {"id",        "created_at", "createdAt", "updated_at",
                                                          "updatedAt", "status",     "data"};

bool is_system_name(std::string_view name) {
  return std::find(kSystemNames.begin(), kSystemNames.end(), name) != kSystemNames.end();
}

/// A record's members, without the wrapper that some responses have.
const JsonObject* unwrap(const Json& json) {
  auto* object = json.object();
  if (!object || object->find("id")) return object;
  const Json* inner = object->find("record");
  return inner && inner->object() ? inner->object() : object;
}

/// The system field under the first of its names that holds a string. Adds that name to `used`.
std::string system_text(const JsonObject& object, std::initializer_list<std::string_view> names,
                        std::vector<std::string_view>& used) {
  for (auto name : names) {
    const Json* value = object.find(name);
    if (!value || !value->string()) continue;
    used.push_back(name);
    return *value->string();
  }
  return {};
}

std::string text_of(const JsonObject& fields, std::string_view name) {
  const Json* value = fields.find(name);
  return value && value->string() ? *value->string() : std::string();
}

/// Empty if there is no usable id.
std::string id_of(const JsonObject& fields, std::string_view name) {
  const Json* value = fields.find(name);
  return value ? read_id(*value).value_or(std::string()) : std::string();
}

WallTime time_of(const Record& record) { return parse_iso8601(record.created_at).value_or(WallTime{}); }

Json ids_as_json(const std::vector<RevisionId>& ids) {
  Json::Array array;
  for (const auto& id : ids) array.emplace_back(id.text());
  return array;
}

/// Appends only missing members: a draft's own fields win over carried ones.
void append_missing(JsonObject& object, const JsonObject& extra) {
  for (const auto& [name, value] : extra)
    if (!object.find(name)) object.append(name, value);
}

}  // namespace

Result<Record> decode_record(const Json& json) {
  auto* object = unwrap(json);
  if (!object) return fail(ErrorCode::protocol, "the record is not an object");
  const Json* id = object->find("id");
  auto id_text = id ? read_id(*id) : std::nullopt;
  if (!id_text) return fail(ErrorCode::protocol, "the record has no usable id");

  Record record;
  record.id = *std::move(id_text);
  std::vector<std::string_view> used = {"id"};
  record.created_at = system_text(*object, {"created_at", "createdAt"}, used);
  record.updated_at = system_text(*object, {"updated_at", "updatedAt"}, used);
  record.status = system_text(*object, {"status"}, used);
  const Json* data = object->find("data");
  if (data && data->object()) used.push_back("data");

  std::set<std::string_view> flat;  // not hashed: strangers choose the names
  for (const auto& [name, value] : *object) {
    if (std::find(used.begin(), used.end(), name) != used.end()) continue;
    flat.insert(name);
    record.fields.append(name, value);
  }
  if (data && data->object())
    for (const auto& [name, value] : *data->object())
      if (!flat.contains(name)) record.fields.append(name, value);
  return record;
}

Json encode_record(const Record& record) {
  JsonObject object, contained;
  object.append("id", record.id);
  object.append("created_at", record.created_at);
  object.append("updated_at", record.updated_at);
  object.append("status", record.status);
  for (const auto& [name, value] : record.fields) (is_system_name(name) ? contained : object).append(name, value);
  if (!contained.empty()) object.append("data", std::move(contained));
  return object;
}

Result<RecordPage> decode_page(const Json& json) {
  auto* object = json.object();
  const Json* records = object ? object->find("records") : nullptr;
  if (!records || !records->array()) return fail(ErrorCode::protocol, "the list has no records");
  RecordPage page;
  for (const Json& item : *records->array()) {
    if (auto record = decode_record(item)) page.records.push_back(*std::move(record));
    else ++page.unreadable;
  }
  for (auto name : {"nextCursor", "next_cursor"}) {
    const Json* cursor = object->find(name);
    if (!cursor || cursor->is_null()) continue;
    if (cursor->string()) page.next_cursor = *cursor->string();
    else if (cursor->number()) page.next_cursor = cursor->number()->text;
    else return fail(ErrorCode::protocol, "the cursor is neither text nor a number");
    break;
  }
  if (page.next_cursor.size() > kMaxCursorLength)
    return fail(ErrorCode::protocol, fmt::format("the cursor is longer than {} bytes", kMaxCursorLength));
  return page;
}

Result<Project> decode_project(Record record) {
  Project project;
  project.id = ProjectId(record.id);
  project.name = text_of(record.fields, "name");
  project.latest_revision = RevisionId(id_of(record.fields, "latest_revision"));
  project.created_at = time_of(record);
  project.raw = std::move(record);
  return project;
}

Revision decode_revision_but_files(Record record) {
  Revision revision;
  revision.id = RevisionId(record.id);
  revision.project = ProjectId(id_of(record.fields, "project"));
  revision.agent = text_of(record.fields, "agent");
  revision.message = text_of(record.fields, "message");
  revision.created_at = time_of(record);
  if (const Json* parents = record.fields.find("parents"); parents && parents->array()) {
    for (const Json& parent : *parents->array())
      if (auto id = read_id(parent)) revision.parents.emplace_back(*std::move(id));
  }
  if (Json* state = record.fields.find("state")) revision.state = std::move(*state);
  constexpr std::array<std::string_view, 6> modelled = {"project", "parents", "agent", "message", "manifest", "state"};
  for (const auto& [name, value] : record.fields)
    if (std::find(modelled.begin(), modelled.end(), name) == modelled.end()) revision.extra.append(name, value);
  return revision;
}

Result<Revision> decode_revision(Record record) {
  const Json* manifest = record.fields.find("manifest");
  if (!manifest) return fail(ErrorCode::refused_input, fmt::format("revision {} has no manifest", record.id));
  auto decoded = decode_manifest(*manifest);
  if (!decoded) return fail(decoded.error().while_doing(fmt::format("revision {}", record.id)));
  Revision revision = decode_revision_but_files(std::move(record));
  revision.manifest = *std::move(decoded);
  return revision;
}

Result<FileChunk> decode_chunk(Record record) {
  Json* content = record.fields.find("content");
  if (!content || !content->string())
    return fail(ErrorCode::refused_input, fmt::format("chunk {} has no content", record.id));
  return FileChunk{ChunkId(record.id), text_of(record.fields, "hash"), *content->string()};
}

Json encode_revision_draft(const RevisionDraft& draft) {
  JsonObject object;
  object.append("project", draft.project.text());
  object.append("parents", ids_as_json(draft.parents));
  object.append("agent", draft.agent);
  object.append("message", draft.message);
  object.append("manifest", encode_manifest(draft.manifest));
  object.append("state", draft.state.is_null() ? Json(JsonObject()) : draft.state);
  append_missing(object, draft.extra);
  return object;
}

Json encode_chunk_draft(const ChunkDraft& draft) {
  JsonObject object;
  object.append("rev", draft.revision.text());
  object.append("path", draft.path);
  object.append("seq", draft.sequence);
  object.append("hash", draft.hash.hex());
  object.append("content", draft.content);
  return object;
}

}  // namespace playfs::wire
