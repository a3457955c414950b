#include "service/service.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "model/content_hash.h"
#include "model/records.h"
#include "service/conditional.h"
#include "service/record_text.h"
#include "wire/json.h"

namespace playfs::service {

namespace {

constexpr std::size_t kDefaultPage = 50;
constexpr std::size_t kLargestPage = 100;
constexpr std::size_t kLongestIdempotencyKey = 255;
// A replace fails only if another one won, so this many failures in a row mean a bug.
constexpr int kReplaceAttempts = 1000;

HttpResponse json_response(std::string body) {
  HttpResponse response;
  response.status = 200;
  response.headers.add("Content-Type", "application/json");
  response.body = std::move(body);
  return response;
}

HttpResponse record_response(const StoredRecord& record) {
  std::string body;
  body.reserve(record.fields.size() + 256);
  body += R"({"record":)";
  print_record(record, body);
  body += '}';
  return json_response(std::move(body));
}

bool is_reading(const HttpRequest& request) { return request.method == "GET" || request.method == "HEAD"; }

bool says_json(const HttpRequest& request) {
  auto content_type = request.headers.get("Content-Type");
  if (!content_type) return true;
  std::string type = to_lower(content_type->substr(0, content_type->find(';')));
  while (!type.empty() && type.back() == ' ') type.pop_back();
  return type == "application/json" || (type.starts_with("application/") && type.ends_with("+json"));
}

Result<std::size_t> page_size(const Target& target) {
  auto text = target.parameter("limit");
  if (!text) return kDefaultPage;
  std::size_t limit = 0;
  const char* end = text->data() + text->size();
  auto [stop, error] = std::from_chars(text->data(), end, limit);
  if (error != std::errc() || stop != end || limit < 1 || limit > kLargestPage)
    return fail(ErrorCode::invalid_argument, "limit must be a whole number from 1 to " + std::to_string(kLargestPage));
  return limit;
}

Result<Position> page_start(const Target& target) {
  auto text = target.parameter("cursor");
  if (!text || text->empty()) return kNewest;
  auto position = parse_cursor(*text);
  if (!position) return fail(ErrorCode::invalid_argument, "cursor must be a nextCursor of an earlier page, unchanged");
  return *position;
}

Result<JsonObject> read_fields(const HttpRequest& request) {
  if (request.body.size() > kMaxBodySize)
    return fail(ErrorCode::record_too_large, "the body is larger than any record; split content into chunks");
  wire::JsonLimits limits;
  limits.document_size = kMaxBodySize;
  limits.values = 20'000;
  auto body = wire::parse_json(request.body, limits);
  if (!body) return fail(ErrorCode::invalid_argument, "the body is not valid JSON: " + body.error().message);
  return declared_fields(*body);
}

Json names(std::span<const std::string_view> list) {
  Json::Array array;
  for (std::string_view name : list) array.emplace_back(name);
  return Json(std::move(array));
}

Status check_kind(const Collection& collection, const JsonObject& fields) {
  const Json* kind = fields.find("kind");
  if (!kind || collection.kinds.empty()) return {};
  const std::string* name = kind->string();
  if (name && std::find(collection.kinds.begin(), collection.kinds.end(), *name) != collection.kinds.end()) return {};
  std::string allowed;
  for (auto known : collection.kinds) allowed += (allowed.empty() ? "" : ", ") + std::string(known);
  return fail(ErrorCode::invalid_argument, "kind must be one of " + allowed);
}

JsonObject kind_details(const Collection& collection) {
  return {{"field", "kind"}, {"allowed", names(collection.kinds)}};
}

Result<Contents> contents_of(const Collection& collection, JsonObject fields) {
  Contents contents{{}, belonging(collection, fields)};
  std::string& text = contents.fields;
  text = wire::to_text(Json(std::move(fields)));
  if (std::size_t size = printed_size(text); size > kMaxRecordSize)
    return fail(ErrorCode::record_too_large, "the record would take " + std::to_string(size) + " bytes of " +
                                                 std::to_string(kMaxRecordSize) + "; split content into chunks");
  return contents;
}

/// "/.site/events" for "/.site/data".
std::string path_beside(std::string_view base_path) {
  return std::string(base_path.substr(0, base_path.rfind('/'))) + "/events";
}

std::string_view host_of(const HttpRequest& request) { return request.headers.get("Host").value_or(""); }

/// A fixed-length name for one caller's request to one collection. The parts before the key contain no line break, so
/// the concatenation is unambiguous.
std::string request_key(const Collection& collection, const std::string& caller, std::string_view idempotency_key) {
  std::string named = std::string(collection.name) + '\n' + caller + '\n' + std::string(idempotency_key);
  return ContentHash::of(named).hex();
}

}  // namespace

Service::Service(Store& store, Accounts& accounts, ServiceOptions options, const SignIn* sign_in, ChangeFeed* feed)
    : store_(store),
      sign_in_(sign_in),
      feed_(feed),
      options_(std::move(options)),
      events_path_(feed ? path_beside(options_.base_path) : std::string()),
      site_(options_.site_hosts),
      gatekeeper_(accounts, options_.steward_key) {}

HttpResponse Service::handle(const HttpRequest& request, const Caller& caller) const {
  try {
    return route(request, caller);
  } catch (const std::exception& exception) {
    return answer(fail(ErrorCode::internal, std::string("exception: ") + exception.what()));
  }
}

HttpResponse Service::route(const HttpRequest& request, const Caller& caller) const {
  if (!site_.answers_for(host_of(request))) return refuse(421, "misdirected", "this host does not belong to this site");

  auto target = parse_target(request.target);
  if (!target) return answer(fail(std::move(target).error()));
  if (feed_ && target->path == events_path_) return route_events(*target, request).response;
  if (sign_in_) {
    if (auto segments = segments_below(SignIn::kBasePath, target->path))
      return route_sign_in(*segments, request, caller);
  }
  auto segments = segments_below(options_.base_path, target->path);
  if (!segments || segments->size() > 2) return refuse(404, "not_found", "there is nothing at this path");

  if (segments->empty()) return route_root(request);
  const Collection* collection = find_collection(segments->front());
  if (!collection) return refuse(404, "not_found", "there is no such collection");
  if (segments->size() == 1) return route_collection(*collection, *target, request, caller);
  return route_record(*collection, segments->back(), request, caller);
}

HttpResponse Service::route_root(const HttpRequest& request) const {
  const std::string allow = "GET, HEAD, OPTIONS";
  if (request.method == "OPTIONS") return preflight_answer(allow, is_public(request));
  if (is_reading(request)) return readable(capabilities(request), request);
  return refuse(405, "method_not_allowed", "only GET is allowed here", allow);
}

HttpResponse Service::route_collection(const Collection& collection, const Target& target, const HttpRequest& request,
                                       const Caller& caller) const {
  const std::string allow = "GET, HEAD, POST, OPTIONS";
  if (request.method == "OPTIONS") return preflight_answer(allow, is_public(request));
  if (is_reading(request)) return readable(list(collection, target, request), request);
  if (request.method != "POST") return refuse(405, "method_not_allowed", "a collection allows GET and POST", allow);
  auto origin = request.headers.get("Origin");
  if (!origin) return refuse(403, "forbidden", "a POST needs an Origin header that names this site's host");
  if (!site_.is_own_origin(*origin, host_of(request), options_.proxies.is_secure(request, caller.address)))
    return refuse(403, "forbidden", "Origin does not match this site's host");
  return answer(create(collection, request, caller));
}

HttpResponse Service::route_record(const Collection& collection, const std::string& id, const HttpRequest& request,
                                   const Caller& caller) const {
  const std::string allow = "GET, HEAD, PATCH, OPTIONS";
  if (request.method == "OPTIONS") return preflight_answer(allow, is_public(request));
  if (is_reading(request)) return readable(get(collection, id, request), request);
  if (request.method != "PATCH") return refuse(405, "method_not_allowed", "a record allows GET and PATCH", allow);
  return answer(patch(collection, id, request, caller));
}

HttpResponse Service::route_sign_in(const std::vector<std::string>& segments, const HttpRequest& request,
                                    const Caller& caller) const {
  bool request_code = segments == std::vector<std::string>{"request-code"};
  bool verify_code = segments == std::vector<std::string>{"verify-code"};
  if (!request_code && !verify_code) return refuse(404, "not_found", "there is nothing at this path");
  if (request.method != "POST") return refuse(405, "method_not_allowed", "only POST is allowed here", "POST");
  std::string client = counted_client(request, caller);
  return answer(request_code ? sign_in_->request_code(request, client) : sign_in_->verify_code(request, client));
}

Result<HttpResponse> Service::capabilities(const HttpRequest& request) const {
  Json::Array table;
  for (const Collection& collection : all_collections()) {
    auto limit = options_.limits.writes(collection);
    JsonObject entry{{"name", collection.name},
                     {"purpose", collection.purpose},
                     {"insert", "public"},
                     {"update", collection.update == Access::anyone ? "public" : "owner"},
                     {"writes_per_hour", limit ? Json(*limit) : Json()},
                     {"fields", names(collection.fields)}};
    if (!collection.kinds.empty()) entry.append("kinds", names(collection.kinds));
    table.emplace_back(std::move(entry));
  }
  JsonObject body{{"name", "Agent Playground Data API"},
                  {"version", "1.0.0"},
                  {"base_path", options_.base_path},
                  {"record_size", static_cast<std::int64_t>(kMaxRecordSize)},
                  {"collections", std::move(table)}};
  if (feed_) body.append("events", events_path_);
  HttpResponse response = json_response(wire::to_text(Json(std::move(body))));
  make_cacheable(request, response, etag_of_text(response.body), Freshness::always_ask);
  return response;
}

Result<HttpResponse> Service::list(const Collection& collection, const Target& target,
                                   const HttpRequest& request) const {
  auto limit = page_size(target);
  if (!limit)
    return refuse(limit.error(),
                  {{"parameter", "limit"}, {"minimum", 1}, {"maximum", static_cast<std::int64_t>(kLargestPage)}});
  auto before = page_start(target);
  if (!before) return refuse(before.error(), {{"parameter", "cursor"}});
  PLAYFS_TRY(Page page, store_.list(collection.name, *limit, *before));
  std::size_t size = 64;
  for (const auto& record : page.records) size += record.fields.size() + 256;
  std::string body;
  body.reserve(size);
  body += R"({"records":[)";
  for (const auto& record : page.records) {
    if (&record != &page.records.front()) body += ',';
    print_record(record, body);
  }
  body += R"(],"nextCursor":)";
  if (page.next) body += '"' + print_cursor(*page.next) + '"';
  else body += "null";
  body += '}';
  HttpResponse response = json_response(std::move(body));
  make_cacheable(request, response, etag_of_text(response.body), Freshness::always_ask);
  return response;
}

Result<HttpResponse> Service::get(const Collection& collection, const std::string& id,
                                  const HttpRequest& request) const {
  PLAYFS_TRY(StoredRecord record, store_.get(collection.name, id));
  HttpResponse response = record_response(record);
  make_cacheable(request, response, etag_of_record(record),
                 collection.immutable ? Freshness::for_ever : Freshness::always_ask);
  return response;
}

std::string Service::counted_client(const HttpRequest& request, const Caller& caller) const {
  return counted_address(options_.proxies.client_of(request, caller.address));
}

std::optional<Charge> Service::charge_for(const Collection& collection, const std::string& client) const {
  auto allowance = options_.limits.writes(collection);
  if (!allowance) return std::nullopt;
  std::string name(collection.name);
  auto window = options_.limits.window();
  std::string time = window == std::chrono::hours(1) ? "hour" : std::to_string(window.count()) + " s";
  return Charge{name + '\n' + client, *allowance, window, std::to_string(*allowance) + " per " + time + " for " + name};
}

Result<HttpResponse> Service::create(const Collection& collection, const HttpRequest& request,
                                     const Caller& caller) const {
  PLAYFS_TRY(Identity who, gatekeeper_.identify(request));
  NewRecord record;
  record.collection = collection.name;
  record.owner = who.account;
  std::string client = counted_client(request, caller);
  record.charge = charge_for(collection, client);
  if (auto key = request.headers.get("Idempotency-Key")) {
    if (key->empty() || key->size() > kLongestIdempotencyKey)
      return refuse(
          {ErrorCode::invalid_argument, "Idempotency-Key must have 1 to 255 characters, for example a UUID", {}},
          {{"header", "Idempotency-Key"}, {"maximum", static_cast<std::int64_t>(kLongestIdempotencyKey)}});
    record.request_key = request_key(collection, who.account.empty() ? client : who.account, *key);
    // Before the body is read: a repeat is answered with its record, whatever its body says.
    PLAYFS_TRY(auto original, store_.created_by(record.request_key));
    if (original) return record_response(*original);
  }
  if (!says_json(request)) return refuse(415, "unsupported_media_type", "send the fields as application/json");
  PLAYFS_TRY(JsonObject fields, read_fields(request));
  PLAYFS_CHECK(may_set(who, collection, fields));
  if (auto kind = check_kind(collection, fields); !kind) return refuse(kind.error(), kind_details(collection));
  PLAYFS_TRY(record.contents, contents_of(collection, std::move(fields)));
  PLAYFS_TRY(StoredRecord created, store_.insert(record));
  has_written();
  return record_response(created);
}

Result<HttpResponse> Service::patch(const Collection& collection, const std::string& id, const HttpRequest& request,
                                    const Caller& caller) const {
  PLAYFS_TRY(StoredRecord record, store_.get(collection.name, id));
  PLAYFS_TRY(Identity who, gatekeeper_.identify(request));
  PLAYFS_CHECK(may_update(who, collection, record));
  if (!says_json(request)) return refuse(415, "unsupported_media_type", "send the fields as application/json");
  PLAYFS_TRY(JsonObject changes, read_fields(request));
  PLAYFS_CHECK(may_set(who, collection, changes));
  if (auto kind = check_kind(collection, changes); !kind) return refuse(kind.error(), kind_details(collection));
  auto charge = charge_for(collection, counted_client(request, caller));
  for (int attempt = 0; attempt < kReplaceAttempts; ++attempt) {
    PLAYFS_TRY(Json stored, wire::parse_json(record.fields));
    const JsonObject* fields = stored.object();
    if (!fields) return fail(ErrorCode::corrupt, "record " + id + " is not a JSON object");
    PLAYFS_TRY(Contents merged, contents_of(collection, merge(*fields, changes)));
    PLAYFS_TRY(auto replaced, store_.replace(collection.name, record, std::move(merged), charge));
    if (replaced) {
      has_written();
      return record_response(*replaced);
    }
    PLAYFS_TRY(record, store_.get(collection.name, id));
  }
  return fail(ErrorCode::busy, "record " + id + " changes too often");
}

void Service::has_written() const {
  if (feed_) feed_->look();
}

HttpResponse Service::answer(Result<HttpResponse> result) const {
  if (result) return *std::move(result);
  if (result.error().code == ErrorCode::record_too_large)
    return refuse(result.error(), {{"maximum", static_cast<std::int64_t>(kMaxRecordSize)}});
  return response_of(problem_of(result.error()), options_.docs_url);
}

bool Service::is_public(const HttpRequest& request) const { return site_.is_public(host_of(request)); }

HttpResponse Service::readable(Result<HttpResponse> result, const HttpRequest& request) const {
  HttpResponse response = answer(std::move(result));
  if (is_public(request)) allow_reading_from_anywhere(response);
  return response;
}

HttpResponse Service::refuse(const Error& error, JsonObject details) const {
  Problem problem = problem_of(error);
  problem.details = std::move(details);
  return response_of(problem, options_.docs_url);
}

HttpResponse Service::refuse(int status, std::string code, std::string message, std::string allow) const {
  return response_of({status, std::move(code), std::move(message), std::nullopt, {}, std::move(allow)},
                     options_.docs_url);
}

}  // namespace playfs::service
