#include "service/service.h"

#include <algorithm>
#include <charconv>
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

Status check_size(const std::string& fields) {
  const std::size_t size = printed_size(fields);
  if (size <= kMaxRecordSize) return {};
  return fail(ErrorCode::record_too_large, "the record would take " + std::to_string(size) + " bytes of " +
                                               std::to_string(kMaxRecordSize) + "; split content into chunks");
}

Result<Contents> contents_of(const Collection& collection, JsonObject fields) {
  Contents contents{{}, belonging(collection, fields)};
  contents.fields = wire::to_text(Json(std::move(fields)));
  PLAYFS_CHECK(check_size(contents.fields));
  return contents;
}

/// While it exists, one of a few places is taken.
class Turn {
 public:
  explicit Turn(Bodies& places) : places_(places) { places_.acquire(); }
  ~Turn() { places_.release(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Bodies& places_;
};

/// A fixed-length name for one caller's request to one collection. The parts before the key contain no line break, so
/// the concatenation is unambiguous.
std::string request_key(const Collection& collection, const std::string& caller, std::string_view idempotency_key) {
  std::string named = std::string(collection.name) + '\n' + caller + '\n' + std::string(idempotency_key);
  return ContentHash::of(named).hex();
}

}  // namespace

Service::Service(Store& store, Accounts& accounts, ServiceOptions options, const SignIn* sign_in, ChangeFeed* feed)
    : store_(store),
      accounts_(accounts),
      sign_in_(sign_in),
      feed_(feed),
      options_(std::move(options)),
      paths_(options_.base_path),
      site_(options_.site_hosts),
      gatekeeper_(accounts, options_.steward_key) {}

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
                 collection.immutable && record.status != kHiddenStatus ? Freshness::for_ever : Freshness::always_ask);
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

Result<HttpResponse> Service::key_holder(const HttpRequest& request) const {
  PLAYFS_TRY(Identity who, gatekeeper_.identify(request));
  if (who.account.empty()) return fail(ErrorCode::unauthorized, "send the API key as Authorization: Bearer KEY");
  JsonObject body{{"account", who.account}, {"steward", who.steward}};
  PLAYFS_TRY(auto account, accounts_.find_account(who.account));
  if (account) body.append("email", account->email);
  HttpResponse response = json_response(wire::to_text(Json(std::move(body))));
  response.headers.add("Cache-Control", "no-store");
  return response;
}

std::optional<HttpResponse> Service::read_contents(const Collection& collection, const HttpRequest& request,
                                                   const Identity& who, Contents& contents) const {
  if (!says_json(request)) return refuse(415, "unsupported_media_type", "send the fields as application/json");
  const Turn turn(bodies_);
  auto fields = read_fields(request);
  if (!fields) return answer(fail(std::move(fields).error()));
  if (auto may = may_set(who, collection, *fields); !may) return answer(fail(std::move(may).error()));
  if (auto kind = check_kind(collection, *fields); !kind) return refuse(kind.error(), kind_details(collection));
  auto made = contents_of(collection, *std::move(fields));
  if (!made) return answer(fail(std::move(made).error()));
  contents = *std::move(made);
  return std::nullopt;
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
  }
  if (auto refusal = read_contents(collection, request, who, record.contents)) {
    if (record.request_key.empty()) return *std::move(refusal);
    // A repeat returns its record, whatever its body says. With a valid body, insert() finds it.
    PLAYFS_TRY(auto original, store_.created_by(record.request_key));
    return original ? record_response(*original) : *std::move(refusal);
  }
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
  JsonObject changes;
  {
    const Turn turn(bodies_);
    PLAYFS_TRY(changes, read_fields(request));
    PLAYFS_CHECK(may_set(who, collection, changes));
    if (auto kind = check_kind(collection, changes); !kind) return refuse(kind.error(), kind_details(collection));
    PLAYFS_CHECK(check_size(wire::to_text(Json(changes))));  // what is kept while this waits is small
  }
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
    PLAYFS_CHECK(may_update(who, collection, record));  // it may have been hidden meanwhile
  }
  return fail(ErrorCode::busy, "record " + id + " changes too often");
}

void Service::has_written() const {
  if (feed_) feed_->look();
}

}  // namespace playfs::service
