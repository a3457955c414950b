#include "app/json_fields.h"

#include "base/fd.h"
#include "wire/json.h"

namespace playfs::app {

namespace {
constexpr std::size_t kLargestDocument = 16 << 20;
}

Result<JsonObject> read_json_object(const std::string& path) {
  PLAYFS_TRY(std::string text, read_file(path, kLargestDocument));
  wire::JsonLimits limits;
  limits.document_size = kLargestDocument;
  auto document = wire::parse_json(text, limits);
  if (!document) return fail(document.error().while_doing(path));
  if (document->object() == nullptr) return fail(ErrorCode::protocol, path + ": not a JSON object");
  return std::move(*document->object());
}

std::string text_of(const JsonObject& fields, std::string_view name) {
  const Json* field = fields.find(name);
  return field != nullptr && field->string() != nullptr ? *field->string() : std::string();
}

std::uint64_t number_of(const JsonObject& fields, std::string_view name) {
  const Json* field = fields.find(name);
  auto number = field != nullptr ? field->integer() : std::nullopt;
  return number && *number > 0 ? static_cast<std::uint64_t>(*number) : 0;
}

const Json::Array* array_of(const JsonObject& fields, std::string_view name) {
  const Json* field = fields.find(name);
  return field != nullptr ? field->array() : nullptr;
}

const JsonObject* object_of(const JsonObject& fields, std::string_view name) {
  const Json* field = fields.find(name);
  return field != nullptr ? field->object() : nullptr;
}

}  // namespace playfs::app
