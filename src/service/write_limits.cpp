#include "service/write_limits.h"

#include "wire/json.h"

namespace playfs::service {

Limits Limits::of_document() {
  Limits limits;
  for (const Collection& collection : all_collections()) limits.writes_[collection.name] = collection.writes_per_hour;
  return limits;
}

Result<Limits> Limits::parse(std::string_view text) {
  auto refuse = [](const std::string& why) { return fail(ErrorCode::invalid_argument, "limits: " + why); };
  auto json = wire::parse_json(text);
  if (!json) return refuse(json.error().message);
  const JsonObject* object = json->object();
  if (!object) return refuse("expected a JSON object with the writes per hour of each collection");
  Limits limits = of_document();
  for (const auto& [name, value] : *object) {
    if (name == "window_seconds") {
      auto seconds = value.integer();
      if (!seconds || *seconds < 1 || *seconds > 3600) return refuse("window_seconds must be from 1 to 3600");
      limits.window_ = std::chrono::seconds(*seconds);
      continue;
    }
    const Collection* collection = find_collection(name);
    if (!collection) return refuse("there is no collection " + name);
    auto count = value.integer();
    if (value.is_null()) limits.writes_.erase(collection->name);
    else if (count && *count >= 0 && *count <= 1'000'000) limits.writes_[collection->name] = static_cast<int>(*count);
    else return refuse(name + " must be a whole number of writes per hour, or null");
  }
  return limits;
}

std::optional<int> Limits::writes(const Collection& collection) const {
  auto found = writes_.find(collection.name);
  if (found == writes_.end()) return std::nullopt;
  return found->second;
}

}  // namespace playfs::service
