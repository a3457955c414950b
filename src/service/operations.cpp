#include "service/operations.h"

#include <algorithm>
#include <array>
#include <utility>

#include "service/sign_in.h"
#include "service/target.h"

namespace playfs::service {

namespace {

constexpr std::array kListParameters = {Parameter::limit, Parameter::cursor};
constexpr std::array kCreateParameters = {Parameter::origin, Parameter::idempotency_key};
constexpr std::array kEventParameters = {Parameter::after, Parameter::last_event_id};
constexpr std::array kExportParameters = {Parameter::cursor};

constexpr std::array kOfReading = {400, 421};
constexpr std::array kOfGetting = {400, 404, 421};
constexpr std::array kOfAskingForKey = {400, 401, 421};
constexpr std::array kOfCreating = {400, 401, 403, 413, 415, 421, 429};
constexpr std::array kOfPatching = {400, 401, 403, 404, 413, 415, 421, 429};
constexpr std::array kOfRequesting = {400, 421, 429};
constexpr std::array kOfVerifying = {400, 401, 421, 429};

constexpr std::array<Operation, 12> kOperations = {{
    {Place::overview, "GET", "overview", "The collections and their rules", {}, kOfReading, true},
    {Place::list_of, "GET", "list", "A page of records, newest first", kListParameters, kOfReading, true},
    {Place::list_of, "POST", "create", "A new record", kCreateParameters, kOfCreating},
    {Place::record_of, "GET", "get", "One record", {}, kOfGetting, true},
    {Place::record_of, "PATCH", "patch", "Replaces the fields that are sent, and keeps the others", {}, kOfPatching},
    {Place::events, "GET", "watch", "Changes as they happen, for as long as the client listens", kEventParameters,
     kOfReading},
    {Place::export_of, "GET", "export", "All records, newest first", kExportParameters, kOfReading},
    {Place::manifest,
     "GET",
     "capabilities",
     "Versions, limits, collections and optional abilities",
     {},
     kOfReading,
     true},
    {Place::description, "GET", "describe", "This document", {}, kOfReading, true},
    {Place::key, "GET", "key", "Whose the API key is that comes with the request", {}, kOfAskingForKey},
    {Place::request_code, "POST", "requestCode", "Sends a sign-in code by mail", {}, kOfRequesting},
    {Place::verify_code, "POST", "verifyCode", "Exchanges a code for an API key", {}, kOfVerifying},
}};

constexpr std::string_view kEvents = "events";
constexpr std::string_view kExport = "export";
constexpr std::string_view kExportSuffix = ".ndjson";
constexpr std::string_view kManifest = "capabilities.json";
constexpr std::string_view kDescription = "openapi.json";
constexpr std::string_view kKey = "key";
constexpr std::string_view kRequestCode = "request-code";
constexpr std::string_view kVerifyCode = "verify-code";

/// Only watching has no HEAD: its answer has no end.
bool has_head(const Operation& operation) { return operation.method == "GET" && operation.place != Place::events; }

std::optional<Route> of_collection(Place place, std::string_view name, std::string id = {}) {
  const Collection* collection = find_collection(name);
  if (!collection) return std::nullopt;
  return Route{place, collection, std::move(id)};
}

std::optional<Route> find_in_data(const std::vector<std::string>& segments) {
  switch (segments.size()) {
    case 0: return Route{};
    case 1: return of_collection(Place::list_of, segments[0]);
    case 2: return of_collection(Place::record_of, segments[0], segments[1]);
    default: return std::nullopt;
  }
}

std::optional<Route> find_in_site(const std::vector<std::string>& segments) {
  if (segments.size() == 2 && segments[0] == kExport && segments[1].ends_with(kExportSuffix))
    return of_collection(Place::export_of, std::string_view(segments[1]).substr(0, segments[1].rfind('.')));
  if (segments.size() != 1) return std::nullopt;
  if (segments[0] == kEvents) return Route{Place::events, nullptr, {}};
  if (segments[0] == kManifest) return Route{Place::manifest, nullptr, {}};
  if (segments[0] == kDescription) return Route{Place::description, nullptr, {}};
  if (segments[0] == kKey) return Route{Place::key, nullptr, {}};
  return std::nullopt;
}

std::optional<Route> find_in_sign_in(const std::vector<std::string>& segments) {
  if (segments.size() != 1) return std::nullopt;
  if (segments[0] == kRequestCode) return Route{Place::request_code, nullptr, {}};
  if (segments[0] == kVerifyCode) return Route{Place::verify_code, nullptr, {}};
  return std::nullopt;
}

}  // namespace

std::span<const Operation> all_operations() { return kOperations; }

std::string allowed_methods(Place place) {
  std::string methods;
  for (const Operation& operation : kOperations) {
    if (operation.place != place) continue;
    if (!methods.empty()) methods += ", ";
    methods += operation.method;
    if (has_head(operation)) methods += ", HEAD";
  }
  return is_readable(place) ? methods + ", OPTIONS" : methods;
}

bool is_readable(Place place) { return place != Place::key && find_operation(place, "GET") != nullptr; }

const Operation* find_operation(Place place, std::string_view method) {
  for (const Operation& operation : kOperations)
    if (operation.place == place && (operation.method == method || (method == "HEAD" && has_head(operation))))
      return &operation;
  return nullptr;
}

Paths::Paths(std::string base_path) : data_(std::move(base_path)), site_(data_.substr(0, data_.rfind('/'))) {}

std::string Paths::of(Place place, std::string_view collection, std::string_view id) const {
  auto below = [](std::string_view base, std::string_view name) { return std::string(base) + '/' + std::string(name); };
  switch (place) {
    case Place::overview: return data_;
    case Place::list_of: return below(data_, collection);
    case Place::record_of: return below(below(data_, collection), id);
    case Place::events: return below(site_, kEvents);
    case Place::export_of: return below(below(site_, kExport), collection) + std::string(kExportSuffix);
    case Place::manifest: return below(site_, kManifest);
    case Place::description: return below(site_, kDescription);
    case Place::key: return below(site_, kKey);
    case Place::request_code: return below(SignIn::kBasePath, kRequestCode);
    case Place::verify_code: return below(SignIn::kBasePath, kVerifyCode);
  }
  return data_;
}

std::optional<Route> Paths::find(std::string_view path) const {
  if (auto segments = segments_below(data_, path)) return find_in_data(*segments);
  if (auto segments = segments_below(SignIn::kBasePath, path)) return find_in_sign_in(*segments);
  if (auto segments = segments_below(site_, path)) return find_in_site(*segments);
  return std::nullopt;
}

}  // namespace playfs::service
