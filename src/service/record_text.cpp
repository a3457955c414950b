#include "service/record_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "base/clock.h"
#include "service/record_id.h"

namespace playfs::service {

namespace {

// Including the camelCase forms: clients accept either spelling, so such a field would pass for the system's.
constexpr std::array<std::string_view, 6> kSystemFields = {"id",        "created_at", "updated_at",
                                                           "createdAt", "updatedAt",  "status"};

bool is_system_field(std::string_view name) {
  return std::find(kSystemFields.begin(), kSystemFields.end(), name) != kSystemFields.end();
}

constexpr char kCursorPrefix = 'p';
// No id is longer, and the index should not hold more text from strangers.
constexpr std::size_t kLongestReference = 255;

}  // namespace

Result<JsonObject> declared_fields(const Json& body) {
  const JsonObject* members = body.object();
  if (!members) return fail(ErrorCode::invalid_argument, "the body must be a JSON object of fields");
  JsonObject flat;
  JsonObject nested;
  for (const auto& [name, value] : *members) {
    if (is_system_field(name)) continue;
    if (name != "data") {
      flat.append(name, value);
      continue;
    }
    const JsonObject* data = value.object();
    if (!data) return fail(ErrorCode::invalid_argument, "data must be a JSON object of fields");
    for (const auto& [inner, inner_value] : *data) {
      if (inner == "data") return fail(ErrorCode::invalid_argument, "a field cannot be named data");
      if (!is_system_field(inner)) nested.append(inner, inner_value);
    }
  }
  return nested.empty() ? flat : merge(nested, flat);
}

JsonObject merge(const JsonObject& base, const JsonObject& changes) {
  // Indexed by name, since a stranger may send thousands of members, and not by a hash, which he could make collide.
  std::map<std::string_view, const Json*> changed;
  for (const auto& [name, value] : changes) changed.emplace(name, &value);
  JsonObject merged;
  for (const auto& [name, value] : base) {
    auto change = changed.extract(name);
    merged.append(name, change.empty() ? value : *change.mapped());
  }
  for (const auto& [name, value] : changes)
    if (changed.erase(name) > 0) merged.append(name, value);
  return merged;
}

std::string belonging(const Collection& collection, const JsonObject& fields) {
  const Json* reference = collection.belongs_by.empty() ? nullptr : fields.find(collection.belongs_by);
  const std::string* id = reference ? reference->string() : nullptr;
  return id && id->size() <= kLongestReference ? *id : std::string();
}

void print_record(const StoredRecord& record, std::string& out) {
  // Nothing here needs escaping: ids, times and statuses come from the service.
  out.append(R"({"id":")").append(record.id);
  out.append(R"(","created_at":")").append(format_iso8601(record.created_at));
  out.append(R"(","updated_at":")").append(format_iso8601(record.updated_at));
  out.append(R"(","status":")").append(record.status) += '"';
  const std::string_view fields = shown_fields(record);
  if (fields.size() > 2) out += ',';
  out.append(fields.substr(1));  // all but the opening brace
}

std::size_t printed_size(std::string_view fields) {
  StoredRecord record{std::string(kRecordIdLength, '0'), {}, {}, kInitialStatus, {}, std::string(fields)};
  std::string text;
  print_record(record, text);
  return text.size();
}

std::string print_cursor(Position position) { return fmt::format("{}{:x}", kCursorPrefix, position); }

std::optional<Position> parse_cursor(std::string_view text) {
  if (text.size() < 2 || text.front() != kCursorPrefix) return std::nullopt;
  Position position = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data() + 1, end, position, 16);
  if (error != std::errc() || stop != end || position < 0 || print_cursor(position) != text) return std::nullopt;
  return position;
}

Result<Position> page_start(const Target& target) {
  auto text = target.parameter("cursor");
  if (!text || text->empty()) return kNewest;
  auto position = parse_cursor(*text);
  if (!position) return fail(ErrorCode::invalid_argument, "cursor must be a nextCursor of an earlier page, unchanged");
  return *position;
}

}  // namespace playfs::service
