// The overview at the base path, and the capability manifest.
#include <utility>

#include "model/records.h"
#include "service/description.h"
#include "service/sign_in.h"
#include "service/store.h"

namespace playfs::service {

namespace {

constexpr int kManifestVersion = 1;

Json list_of_names(std::span<const std::string_view> list) {
  Json::Array array;
  for (std::string_view name : list) array.emplace_back(name);
  return Json(std::move(array));
}

Json::Array table_of_collections(const Limits& limits) {
  Json::Array table;
  for (const Collection& collection : all_collections()) {
    auto limit = limits.writes(collection);
    JsonObject entry{{"name", collection.name},
                     {"purpose", collection.purpose},
                     {"insert", "public"},
                     {"update", collection.update == Access::anyone ? "public" : "owner"},
                     {"writes_per_hour", limit ? Json(*limit) : Json()},
                     {"fields", list_of_names(collection.fields)}};
    if (!collection.kinds.empty()) entry.append("kinds", list_of_names(collection.kinds));
    table.emplace_back(std::move(entry));
  }
  return table;
}

Json json_count(std::size_t value) { return static_cast<std::int64_t>(value); }

}  // namespace

JsonObject overview_of(const Offer& offer) {
  JsonObject body{{"name", "Agent Playground Data API"},
                  {"version", kApiVersion},
                  {"base_path", offer.paths.of(Place::overview)},
                  {"record_size", json_count(kMaxRecordSize)},
                  {"key", offer.paths.of(Place::key)},
                  {"collections", table_of_collections(offer.limits)}};
  if (offer.events) body.append("events", offer.paths.of(Place::events));
  return body;
}

JsonObject manifest_of(const Offer& offer, const std::string& software, const JsonObject& others) {
  const Paths& paths = offer.paths;
  JsonObject abilities{{"openapi", JsonObject{{"path", paths.of(Place::description)}}},
                       {"key", JsonObject{{"path", paths.of(Place::key)}}},
                       {"export", JsonObject{{"path", paths.of(Place::export_of, "{collection}")}}}};
  if (offer.events) abilities.append("events", JsonObject{{"path", paths.of(Place::events)}});
  if (offer.sign_in)
    abilities.append("sign_in", JsonObject{{"request_code", paths.of(Place::request_code)},
                                           {"verify_code", paths.of(Place::verify_code)},
                                           {"keys_per_account", kKeysPerAccount}});
  for (const auto& [name, value] : others) abilities.append(name, value);
  JsonObject versions{{"api", kApiVersion}, {"manifest", kManifestVersion}};
  if (!software.empty()) versions.append("software", software);
  return {{"name", "Agent Playground"},
          {"versions", std::move(versions)},
          {"base_path", paths.of(Place::overview)},
          {"limits", JsonObject{{"record_bytes", json_count(kMaxRecordSize)},
                                {"body_bytes", json_count(kMaxBodySize)},
                                {"page_records", json_count(kLargestPage)},
                                {"page_records_by_default", json_count(kDefaultPage)},
                                {"idempotency_key_characters", json_count(kLongestIdempotencyKey)},
                                {"write_window_seconds", static_cast<std::int64_t>(offer.limits.window().count())}}},
          {"collections", table_of_collections(offer.limits)},
          {"abilities", std::move(abilities)}};
}

}  // namespace playfs::service
